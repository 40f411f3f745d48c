"""Operations and their dispatch: declaration, permission, and bad arguments."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
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
from tests.ops import permissions
from tests.ops.permissions import Permission
from workbench import app
from workbench.app import Workbench
from workbench.errors import BadInput
from workbench.model import LARGEST_INT, Capability, Level, Wire, uuid7
from workbench.ops import ANONYMOUS, OPERATOR, Caller, Ctx, Ok, Op, collect, op
from workbench.services import SERVICES

CATALOGUE = collect(SERVICES)


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
            "extra": {},
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
        await given.task(workbench, "x", "tester", metadata={"extra": extra})
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


def test_who_may_call_an_operation_is_as_reviewed() -> None:
    advice = "If that is meant, run `python -m tests.ops.permissions`."
    assert {name: Permission.of(op) for name, op in CATALOGUE.items()} == permissions.reviewed(), advice
    assert permissions.FILE.read_text("utf-8") == permissions.text(), advice


LOWEST: dict[str, tuple[Level | None, Level | None]] = {
    "access": (Level.READ, Level.OPERATOR),
    "agents": (Level.READ, Level.OPERATOR),
    "approvals": (Level.PLANNER, Level.OPERATOR),
    "attempts": (Level.READ, Level.WORKER),
    "conversations": (Level.OPERATOR, Level.OPERATOR),
    "definitions": (None, Level.OPERATOR),
    "holds": (Level.PLANNER, Level.OPERATOR),
    "messages": (Level.OPERATOR, Level.WORKER),
    "insight": (Level.READ, Level.WORKER),
    "integration": (None, Level.PLANNER),
    "models": (Level.OPERATOR, Level.OPERATOR),
    "notifications": (Level.OPERATOR, Level.OPERATOR),
    "personalities": (Level.READ, Level.OPERATOR),
    "processes": (Level.READ, Level.PLANNER),
    "resources": (Level.OPERATOR, None),
    "reviews": (Level.READ, Level.OPERATOR),
    "runs": (Level.PLANNER, Level.OPERATOR),
    "schedules": (Level.OPERATOR, Level.OPERATOR),
    "servers": (Level.OPERATOR, Level.OPERATOR),
    "saved_views": (Level.OPERATOR, Level.OPERATOR),
    "sharing": (Level.READ, Level.WORKER),
    "spaces": (Level.READ, Level.OPERATOR),
    "spawning": (Level.OPERATOR, Level.PLANNER),
    "spending": (Level.OPERATOR, Level.WORKER),
    "tasks": (Level.READ, Level.WORKER),
    "telemetry": (Level.OPERATOR, Level.OPERATOR),
    "tools": (Level.OPERATOR, Level.OPERATOR),
    "undo": (None, Level.OPERATOR),
    "faults": (Level.OPERATOR, Level.OPERATOR),
    "worktrees": (Level.READ, Level.WORKER),
}
"""The lowest levels at which a service's operations without a capability read, and at which they change something."""
REQUIRED = {
    Capability.DEFINITIONS: ("definitions", Level.PLANNER, Level.PLANNER),
    Capability.TOOLS: ("tools", Level.READ, Level.WORKER),
    Capability.OWN_DEFINITION: ("definitions", Level.READ, None),
    Capability.CHANGE_OWN_DEFINITION: ("definitions", None, Level.WORKER),
    Capability.OWN_PERSONALITY: ("personalities", None, Level.WORKER),
}
"""The same of the operations that require a capability, and their service."""
OF_ITSELF = {
    *("register", "register_agent", "registration_status", "ping", "deregister_agent"),
    *("enlist_elsewhere", "worker_terms", "send_process_log"),
}
"""What anyone may do to enter, by a machine's token too, and tell of its process, and every agent to leave."""


def test_no_operation_is_open_to_more_callers_than_its_service_permits() -> None:
    def lowest(ops: Iterable[Op], reads: bool) -> Level | None:
        return min((op.allow for op in ops if op.reads is reads), default=None)

    plain, requiring = defaultdict(list), defaultdict(list)
    for name, operation in CATALOGUE.items():
        service = operation.fn.__module__.split(".")[2]
        if operation.requires:
            requiring[operation.requires, service].append(operation)
        elif name not in OF_ITSELF:
            plain[service].append(operation)
    assert {service: (lowest(ops, True), lowest(ops, False)) for service, ops in plain.items()} == LOWEST
    found = {needed: (name, lowest(ops, True), lowest(ops, False)) for (needed, name), ops in requiring.items()}
    assert found == REQUIRED


def test_what_destroys_something_needs_a_planner_unless_it_is_the_callers_own() -> None:
    destructive = [op for op in CATALOGUE.values() if op.destructive and op.allow < Level.PLANNER]
    assert [op.name for op in destructive if op.requires is not Capability.CHANGE_OWN_DEFINITION] == []


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
async def test_dispatch_permits_each_level_the_operations_as_reviewed(workbench: Workbench) -> None:
    told, expected = {}, {}
    for caller, (name, (needed, capability, _)) in product(CALLERS, permissions.reviewed().items()):
        told[caller.name, name] = (await given.refusal(workbench.dispatch(caller, name, {"no_such_argument": 1}))).code
        expected[caller.name, name] = refusal(caller, needed, capability, CATALOGUE[name].invalid)
    assert told == expected


@pytest.mark.anyio
async def test_operations_that_need_the_servers_are_refused_without_them(workbench: Workbench) -> None:
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
