"""Operations and their dispatch: declaration, permission, and bad arguments."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from inspect import signature
from itertools import product
from types import ModuleType
from typing import Annotated, Any, get_type_hints

import hypothesis
import pytest
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tests import given
from tests.conftest import Admit
from tests.given import refused
from workbench import app
from workbench.app import Workbench
from workbench.errors import BadInput
from workbench.model import LARGEST_INT, Capability, Level, Wire, uuid7
from workbench.ops import ANONYMOUS, OPERATOR, Caller, Ctx, Ok, Op, collect, op
from workbench.services import SERVICES

ALLOWED = """
anonymous  ping register register_agent registration_status
read       get_persona get_personas list_persona_versions get_worktree_status get_active_agents
read       count_tasks get_task get_task_graph get_task_logs get_task_status get_task_tree get_tasks list_tasks
read       wait_for_task
read       get_worktree_diff get_requested_changes list_conflicts get_attempt_diff list_closed_worktrees list_worktrees
read       list_agents list_events list_newest_events list_plans export_plan whoami read deregister_agent
read       list_projects get_project list_sessions get_session list_teams get_team get_agent get_context
read       list_agent_tools get_confinement get_agent_history
read       list_personalities get_personality list_personality_changes
worker     heartbeat heartbeat_and_get_tasks get_available_tasks claim_task start_task
worker     report_task_progress complete_task fail_task release_task begin_attempt finish_attempt
worker     create_subtask add_dependency remove_dependency
worker     write update_context delete_context restore_context
planner    create_task create_tasks cancel_task retry_task reassign_task set_priority create_plan
planner    create_worktree discard_worktree integrate_worktree request_integration update_worktree get_approval
planner    adopt_attempt resolve_worktree
definitions agent_list agent_get_info agent_create agent_clone agent_delete
definitions agent_get_trust agent_request_trust agent_probe_mcp_server
definitions agent_list_rules agent_get_rule agent_add_rule agent_update_rule agent_delete_rule
definitions agent_history agent_diff agent_validate agent_export agent_import agent_analytics agent_bulk
definitions agent_list_templates agent_create_from_template agent_create_from_persona agent_migrate agent_get_schema
definitions agent_get_settings agent_set_setting agent_get_metadata agent_update_metadata
definitions agent_get_system_prompt agent_set_system_prompt
definitions agent_list_references agent_get_reference agent_add_reference
definitions agent_update_reference agent_delete_reference
definitions agent_list_tools agent_get_tool agent_add_tool agent_update_tool agent_delete_tool
definitions agent_list_providers agent_get_provider_config agent_validate_provider_config
definitions agent_install_provider agent_update_provider agent_uninstall_provider
definitions agent_list_mcp_servers agent_get_mcp_server agent_add_mcp_server
definitions agent_update_mcp_server agent_delete_mcp_server
tools      list_tools get_tool list_tool_calls get_tool_call
use-tools  call_tool cancel_tool_call
own        list_rules get_rule list_references get_reference
change-own add_rule update_rule delete_rule add_reference update_reference delete_reference
planner    spawn_agent restart_agent terminate_agent get_managed_agents get_agent_process_info list_profiles
operator   enlist_worker get_unattended_work list_approvals approve reject approve_many reject_many save_persona
operator   update_agent assign_agents issue_token delete_agent restore_agent revoke_agent
operator   add_admission_rule list_admission_rules remove_admission_rule list_allowlist allow_agent disallow_agent
operator   list_untrusted_files
operator   create_project update_project delete_project restore_project
operator   create_session update_session delete_session restore_session
operator   create_team update_team move_team delete_team restore_team
operator   agent_revoke_trust
operator   create_conversation list_conversations get_conversation update_conversation delete_conversation
operator   ask stop_answer retry_answer list_turns read_frames export_conversation
operator   update_agent_tool list_tool_permissions set_tool_permission
operator   list_peers get_peer block_peer unblock_peer set_peer_permission get_network join_network leave_network
operator   publish_personality withdraw_personality get_own_personality release_personality_name
own-traits update_traits
operator   list_tool_servers add_tool_server update_tool_server remove_tool_server restart_tool_server
operator   get_performance get_activity connection_instructions prune_worktrees get_unattended_work
operator   offer_tools withdraw_tools take_tool_calls report_tool_progress finish_tool_call get_tool_log
operator   export import_records
operator   list_decided_approvals request_changes undo list_saved_views save_view rename_saved_view delete_saved_view
planner    list_runs get_run get_run_series compare_runs list_sweeps
operator   start_run end_run record_metrics add_run_artifact update_run archive_run restore_run
operator   get_run_artifact get_task_artifact start_sweep
"""
"""Who may call what, as the design has it; each line includes those above it."""

CATALOGUE = collect(SERVICES)


REQUIRED = {
    "definitions": (Level.PLANNER, Capability.DEFINITIONS),
    "tools": (Level.READ, Capability.TOOLS),
    "use-tools": (Level.WORKER, Capability.TOOLS),
    "own": (Level.READ, Capability.OWN_DEFINITION),
    "own-traits": (Level.WORKER, Capability.OWN_PERSONALITY),
    "change-own": (Level.WORKER, Capability.CHANGE_OWN_DEFINITION),
}
"""The rows whose operations require more than a level."""


def table() -> dict[str, tuple[Level, Capability | None]]:
    rows = [line.split() for line in ALLOWED.strip().splitlines()]
    return {
        name: REQUIRED[row] if row in REQUIRED else (Level[row.upper()], None) for row, *names in rows for name in names
    }


class Made(Wire):
    """The result of the operations of these tests."""

    size: int
    names: list[str]


@op(allow=Level.WORKER, destructive=True)
async def make(
    ctx: Ctx,
    name: Annotated[str, Field(min_length=1, max_length=9, description="What it is called.")],
    size: Annotated[int, Field(ge=1, le=LARGEST_INT)] = 3,
    tags: list[str] = [],
    extra: Any = None,
) -> Made:
    """Make a thing.

    It is small.
    """
    return Made(size=size, names=[name, *tags])


MAKE = collect([sys.modules[__name__]])["make"]


def service(name: str, *functions: Callable[..., Awaitable[Wire]]) -> ModuleType:
    """A service module, made on the spot."""
    module = ModuleType(name)
    for fn in functions:
        fn.__module__ = name
        setattr(module, fn.__name__, fn)
    return module


def thing() -> Callable[..., Awaitable[Wire]]:
    @op(allow=Level.READ)
    async def thing(ctx: Ctx) -> Ok:
        """Do a thing."""
        return Ok()

    return thing


def test_the_signature_is_the_schema_and_the_docstring_the_help() -> None:
    assert MAKE.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 9, "description": "What it is called."},
            "size": {"type": "integer", "minimum": 1, "maximum": LARGEST_INT, "default": 3},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "extra": {"default": None},
        },
    }
    assert MAKE.output_schema["required"] == ["size", "names"]
    assert MAKE.help == "Make a thing.\n\nIt is small."
    assert MAKE.summary == "Make a thing."
    assert (MAKE.name, MAKE.allow, MAKE.reads, MAKE.destructive) == ("make", Level.WORKER, False, True)


def test_an_omitted_argument_gets_a_default_that_calls_do_not_share() -> None:
    assert MAKE.validate({"name": "x"}) == {"name": "x", "size": 3, "tags": [], "extra": None}
    assert MAKE.validate({"name": "x", "size": 1, "extra": 10**40})["extra"] == 10**40
    MAKE.validate({"name": "x"})["tags"].append("kept")
    assert MAKE.validate({"name": "x"})["tags"] == []


SECRET = "wba_" + "s" * 43
BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing at all": ({}, ["name"]),
    "a wrong type": ({"name": ["secret"]}, ["name"]),
    "no string but a number": ({"name": 5}, ["name"]),
    "too long": ({"name": SECRET}, ["name"]),
    "too short": ({"name": ""}, ["name"]),
    "too small": ({"name": "x", "size": 0}, ["size"]),
    "an item of a wrong type": ({"name": "x", "tags": ["a", {}]}, ["tags.1"]),
    "an unknown field": ({"name": "x", "colour": SECRET}, ["colour"]),
    "the context": ({"name": "x", "ctx": {}}, ["ctx"]),
    "more than one mistake": ({"size": -1, "colour": 1}, ["name", "size", "colour"]),
    "more than 64 bits": ({"name": "x", "size": 2**63}, ["size"]),
}


@pytest.mark.parametrize(("arguments", "fields"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_a_problem_names_the_field_and_the_reason_but_no_value(arguments: dict[str, Any], fields: list[str]) -> None:
    error = refused("INVALID_ARGUMENTS", MAKE.validate, arguments)
    assert sorted(problem["field"] for problem in error.details["problems"]) == sorted(fields)
    assert all(problem["reason"] for problem in error.details["problems"])
    assert error.message.startswith("make: ")
    assert SECRET not in str(error.as_dict())


def test_an_unknown_argument_gets_the_one_that_may_be_meant_unless_there_are_many() -> None:
    def reasons(arguments: dict[str, Any]) -> list[tuple[str, str]]:
        problems = refused("INVALID_ARGUMENTS", MAKE.validate, {"name": "x", **arguments}).details["problems"]
        return [(problem["field"], problem["reason"]) for problem in problems]

    unknown, meant = "unknown name", "unknown name (did you mean size?)"
    found = reasons({"sise": 1, "zz": 2, "label": {"name": 1}})
    assert found == [("sise", meant), ("zz", unknown), ("label", unknown)]
    found = reasons({f"size{n}": n for n in range(9)})
    assert [reason for _, reason in found] == [meant] * 5 + [unknown] * 4


@pytest.mark.anyio
async def test_an_unknown_operation_gets_those_that_may_be_meant(workbench: Workbench, admit: Admit) -> None:
    reader = (await admit("ada", tool="read")).caller
    for caller, may in ((OPERATOR, True), (ANONYMOUS, False), (reader, False)):
        error = await given.refusal(workbench.dispatch(caller, "aprove", {}))
        assert error.code == "UNKNOWN_OPERATION"
        assert ("Did you mean approve" in error.message) is may
        former = await given.refusal(workbench.dispatch(caller, "send_message", {}))
        assert former.message.startswith("There is no operation 'send_message'. It is now ask. GET /api/ops ") is may


@pytest.mark.anyio
@pytest.mark.parametrize("extra", [float("nan"), [float("inf")], {"x": "\ud800"}, {"x": object()}])
async def test_arguments_that_are_not_json_are_refused(workbench: Workbench, extra: Any) -> None:
    with pytest.raises(BadInput, match="not JSON"):
        await workbench.call("create_task", title="x", persona_id="tester", metadata={"extra": extra})
    assert (await workbench.call("list_tasks"))["tasks"] == []


def test_every_whole_number_an_operation_takes_fits_into_64_bits() -> None:
    schemas = {name: op.arguments.__pydantic_core_schema__ for name, op in CATALOGUE.items()}
    assert [where for name, schema in schemas.items() for where in whole_numbers(schema, name)] == []


def whole_numbers(schema: Any, where: str = "") -> Iterator[str]:
    """The places of a pydantic core schema that have whole numbers without a maximum."""
    if isinstance(schema, dict):
        if schema.get("type") == "int" and schema.get("le", LARGEST_INT + 1) > LARGEST_INT:
            yield where
        for key, value in schema.items():
            if key not in ("metadata", "serialization"):
                yield from whole_numbers(value, f"{where}.{key}")
    elif isinstance(schema, list | tuple):
        for number, value in enumerate(schema):
            yield from whole_numbers(value, f"{where}[{number}]")


def test_the_levels_of_all_operations_are_those_of_the_table() -> None:
    assert {name: (op.allow, op.requires) for name, op in CATALOGUE.items()} == table()


SAYS: dict[str, Callable[[Op], bool]] = {
    "what it does, in a sentence": lambda op: op.summary.endswith("."),
    "that it gets the context first": lambda op: next(iter(signature(op.fn).parameters)) == "ctx",
    "that this is a Ctx": lambda op: get_type_hints(op.fn)["ctx"] is Ctx,
    "what it returns": lambda op: issubclass(get_type_hints(op.fn)["return"], Wire),
    "that it takes nothing else": lambda op: op.input_schema["additionalProperties"] is False,
    "that it returns an object": lambda op: op.output_schema["type"] == "object",
}


def test_an_operation_says_what_it_does_and_what_it_returns() -> None:
    unsaid = [f"{op.name}: {what}" for op, (what, said) in product(CATALOGUE.values(), SAYS.items()) if not said(op)]
    assert unsaid == []


def test_every_parameter_is_described_and_every_value_has_a_type() -> None:
    takes = {name: op.input_schema for name, op in CATALOGUE.items()}
    returns = {f"{name}, returned": op.output_schema for name, op in CATALOGUE.items()}
    assert [where for name, schema in takes.items() for where in undescribed(schema, name)] == []
    assert [where for name, schema in {**takes, **returns}.items() for where in untyped(schema, name)] == []


def undescribed(schema: Any, name: str) -> Iterator[str]:
    """The properties of a JSON Schema, and of its definitions, without a description."""
    definitions = schema.get("$defs", {})
    for where, described in {name: schema, **definitions}.items():
        for field, value in described.get("properties", {}).items():
            target = definitions.get(value.get("$ref", "").rpartition("/")[2], {})
            if not value.get("description", target.get("description", "")).endswith("."):
                yield f"{where}.{field}"


def untyped(schema: Any, where: str) -> Iterator[str]:
    """The untyped places of a JSON Schema: some clients refuse the whole tool for them."""
    if not schema.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
        yield where
    for key in ("properties", "$defs"):
        for name, value in schema.get(key, {}).items():
            yield from untyped(value, f"{where}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from untyped(schema[key], f"{where}.{key}")
    for value in (*schema.get("anyOf", ()), *schema.get("prefixItems", ())):
        yield from untyped(value, where)


def test_operations_that_read_are_not_destructive() -> None:
    assert [op.name for op in CATALOGUE.values() if op.reads and op.destructive] == []
    reading = {op.name for op in CATALOGUE.values() if op.reads}
    assert {n for n in CATALOGUE if n.startswith(("get_", "list_"))} <= reading


def test_two_operations_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="two operations are named thing"):
        collect([service("one", thing()), service("two", thing())])


def test_the_operations_of_a_package_are_those_defined_in_its_modules() -> None:
    made = thing()
    package, neighbour, importer = ModuleType("one"), ModuleType("on"), ModuleType("two")
    package.part = neighbour.part = service("one.part", made)  # type: ignore[attr-defined]
    importer.thing = made  # type: ignore[attr-defined]
    assert list(collect([package])) == ["thing"]
    assert list(collect([neighbour])) == [], "its name only begins alike"
    assert list(collect([package.part, importer])) == ["thing"]


def test_the_catalogue_is_in_alphabetical_order() -> None:
    assert list(CATALOGUE) == sorted(CATALOGUE)


PENDING = Caller(Level.ANONYMOUS, "pending_1", agent="1")
CALLERS = [ANONYMOUS, PENDING, *(Caller(level, level.name.lower(), "1") for level in list(Level)[1:4]), OPERATOR]


def refusal(caller: Caller, needed: Level, capability: Capability | None, invalid: str) -> str:
    """The refusal of a call with an argument that no operation has."""
    if caller.level >= needed and (capability is None or capability in caller.capabilities):
        return invalid
    if caller.level > Level.ANONYMOUS:
        return "FORBIDDEN"
    return "NOT_ASSIGNED" if caller.agent else "TOKEN_REQUIRED"


@pytest.mark.anyio
async def test_dispatch_permits_each_level_the_operations_of_the_table(workbench: Workbench) -> None:
    told, expected = {}, {}
    for caller, (name, (needed, capability)) in product(CALLERS, table().items()):
        told[caller.name, name] = (await given.refusal(workbench.dispatch(caller, name, {"no_such_argument": 1}))).code
        expected[caller.name, name] = refusal(caller, needed, capability, CATALOGUE[name].invalid)
    assert told == expected


@pytest.mark.anyio
async def test_operations_that_need_the_servers_are_refused_without_them(workbench: Workbench) -> None:
    found = [op.name for op in CATALOGUE.values() if op.needs_server]
    hosts = ["finish_tool_call", "offer_tools", "report_tool_progress", "take_tool_calls", "withdraw_tools"]
    chat = ["ask", "retry_answer", "stop_answer"]
    others = ["connection_instructions", "enlist_worker", "restart_agent", "restart_tool_server", "spawn_agent"]
    assert found == sorted([*others, *chat, *hosts])
    error = await given.refusal(workbench.call("spawn_agent", persona_id="implementer"))
    assert (error.code, error.status) == ("NO_SERVER", 503)


@pytest.mark.anyio
async def test_a_wrong_word_is_answered_with_the_words_that_exist(workbench: Workbench) -> None:
    message = (await given.refusal(workbench.call("list_tasks", status="faild"))).message
    assert message.startswith("list_tasks: status: ")
    assert message.endswith("(did you mean failed?).")
    assert "Input should be" not in message


def deferred(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models that are built when they are first used, where a mistake would be found late."""
    for one in model.__subclasses__():
        if one.__module__.startswith(f"{app.__package__}.") and one.model_config.get("defer_build"):
            yield one
        yield from deferred(one)


def test_every_model_can_be_built() -> None:
    for model in {*deferred(BaseModel)}:
        model.model_rebuild()
        assert model.__pydantic_complete__, model


@hypothesis.given(st.integers(0, 2**48 * 1_000 - 2))
def test_an_id_has_its_time_and_sorts_by_its_microsecond(now: int) -> None:
    made = uuid7(now)
    assert (made.version, made.variant, made.int >> 80) == (7, "specified in RFC 4122", now // 1_000)
    assert str(made) < str(uuid7(now + 1))
    assert made != uuid7(now)
