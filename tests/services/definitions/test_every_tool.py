"""All tools that manage definitions, with good arguments and with bad ones of every kind.

The cases are derived from the catalogue and `rows.py`: a tool without a row fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.conftest import Admit
from tests.op_codes import EVERYWHERE, codes_of
from tests.services.definitions.rows import (
    CHANGE_NO_FILES,
    GOOD,
    LITERAL,
    NAMES_NEW,
    NULL_IF_UNKNOWN,
    OLDER,
    PREPARATION,
    REVIEWER,
    TARGETS,
    UNKNOWN,
)
from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.ops import Op, collect
from workbench.services import SERVICES

pytestmark = [pytest.mark.anyio, pytest.mark.long]

TOOLS = {name: op for name, op in collect(SERVICES).items() if name.startswith("agent_")}
SECRET = "what-no-tool-may-read"
"""What stands in a file outside the directories of definitions."""

Tree = dict[str, bytes]


@pytest.fixture
async def prepared(workbench: Workbench) -> Workbench:
    """An open project with a definition that has one of everything, and a file that does not belong to it."""
    for name, arguments in PREPARATION:
        await workbench.call(name, **arguments)
    (workbench.settings.home / "agents" / "old.yaml").write_text(OLDER)
    (workbench.settings.project / "secret.md").write_text(SECRET)
    return workbench


def tree(workbench: Workbench) -> Tree:
    """Every file of the project but those of the store."""
    project, home = workbench.settings.project, workbench.settings.home
    files = [path for path in project.rglob("*") if path.is_file() and not path.is_symlink()]
    own = [path for path in files if path.parent != home and ".workbench" not in path.parts]
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in own}


async def refused(workbench: Workbench, name: str, arguments: dict[str, Any]) -> WorkbenchError:
    """The error with which a tool refuses arguments; nothing has changed then."""
    before = tree(workbench)
    with pytest.raises(WorkbenchError) as caught:
        await workbench.call(name, **arguments)
    assert tree(workbench) == before
    json.dumps(caught.value.as_dict())
    return caught.value


def test_every_tool_has_a_row() -> None:
    assert sorted(GOOD) == sorted(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
async def test_good_arguments(prepared: Workbench, name: str) -> None:
    op, before = TOOLS[name], tree(prepared)
    result = await prepared.call(name, **GOOD[name])
    Draft202012Validator(op.output_schema).validate(result)
    assert LITERAL not in json.dumps(result)
    assert (tree(prepared) == before) == (op.reads or name in CHANGE_NO_FILES)
    assert not op.destructive or name.partition("_")[2].startswith(("delete", "uninstall", "revoke", "migrate", "bulk"))


@pytest.mark.parametrize("name", TOOLS)
async def test_a_missing_argument(prepared: Workbench, name: str) -> None:
    for missing in TOOLS[name].input_schema.get("required", []):
        arguments = {key: value for key, value in GOOD[name].items() if key != missing}
        error = await refused(prepared, name, arguments)
        assert error.code == "VALIDATION_ERROR"
        assert missing in error.message


@pytest.mark.parametrize("name", TOOLS)
async def test_an_argument_of_a_wrong_type(prepared: Workbench, name: str) -> None:
    for parameter, wrong in wrong_types(TOOLS[name]):
        error = await refused(prepared, name, {**GOOD[name], parameter: wrong})
        assert error.code == ("CONFIRMATION_REQUIRED" if parameter == "confirm" else "VALIDATION_ERROR"), wrong
        assert parameter in error.message


def wrong_types(op: Op) -> Iterator[tuple[str, Any]]:
    """Each parameter with values that its JSON Schema excludes, and that are no spelling of one that it allows."""
    schema = op.input_schema
    for parameter, described in schema["properties"].items():
        valid = Draft202012Validator({**described, "$defs": schema.get("$defs", {})})
        for wrong in ([{"no": ["such"]}], {"no": ["such"]}, "no such thing", None):
            if not valid.is_valid(wrong):
                yield parameter, wrong


@pytest.mark.parametrize("name", TOOLS)
async def test_an_unknown_argument(prepared: Workbench, name: str) -> None:
    error = await refused(prepared, name, {**GOOD[name], "unknown": 1})
    assert error.code == "VALIDATION_ERROR"
    assert "unknown" in error.message


UNKNOWN_TARGETS = (
    "no-such-agent",
    "./agents/no-such-agent",
    "019b0000-0000-7000-8000-000000000000",
    f"{REVIEWER}/agent.yaml",
    f"{REVIEWER}/rules",
)


@pytest.mark.parametrize("name", TOOLS)
async def test_an_unknown_target(prepared: Workbench, name: str) -> None:
    for parameter in sorted(TOOLS[name].parameters & TARGETS):
        for target in UNKNOWN_TARGETS:
            error = await refused(prepared, name, {**GOOD[name], parameter: target})
            assert error.code == "AGENT_NOT_FOUND" or (name, error.code) == ("agent_migrate", "NOTHING_TO_MIGRATE")
    for parameter in sorted(TOOLS[name].parameters & UNKNOWN.keys()):
        arguments = {**GOOD[name], parameter: "no-such-part"}
        if name in NULL_IF_UNKNOWN:
            assert set((await prepared.call(name, **arguments)).values()) == {None}
        elif NAMES_NEW.get(name) != parameter:
            assert (await refused(prepared, name, arguments)).code == UNKNOWN[parameter]


HOSTILE = (
    "",
    " ",
    ".",
    "..",
    "/",
    "~",
    "../secret.md",
    "../../secret.md",
    "./agents/../../secret.md",
    "./agents/reviewer/../reviewer",
    "agents\\..\\..\\secret.md",
    "/etc/passwd",
    "file:///etc/passwd",
    f"{REVIEWER}\0",
    f"{REVIEWER}/rules",
    f"{REVIEWER}/agent.yaml",
    ".workbench",
    "./agents/.workbench/reviewer",
    "./agents/CON",
    "aux.md",
    "./agents/reviewer.",
    "./agents/Reviewer",
    "./agents/rеviewer",  # the first e is Cyrillic
    "./agents/ｒeviewer",
    "\u202eevil",
    "new\nline",
    "\ud800",
    "a" * 300,
    "x" * 1_000_000,
    "{{7*7}}{name}{0.__class__}%s",
    "'; DROP TABLE agents; --",
    "!!python/object/apply:os.system [id]",
    "&a [*a, *a]",
    "---\nname: other\n---\n",
    "••••••",
)
"""Values that must do no harm, wherever they are passed."""


@pytest.mark.parametrize("name", TOOLS)
async def test_hostile_values_reach_nothing(prepared: Workbench, name: str) -> None:
    before, texts = tree(prepared), [parameter for parameter, _ in text_parameters(TOOLS[name])]
    for parameter in texts:
        for value in HOSTILE:
            answer = await answered(prepared, name, {**GOOD[name], parameter: value})
            assert SECRET not in answer
            assert LITERAL not in answer
    after = tree(prepared)
    outside = {path for path in before.keys() | after.keys() if not path.startswith(".aiswarm/agents/")}
    assert {path for path in outside if before.get(path) != after.get(path)} == set()
    if name != "agent_delete":
        assert (await prepared.call("agent_get_info", agentTarget=REVIEWER))["name"] == "Reviewer"


def text_parameters(op: Op) -> Iterator[tuple[str, Any]]:
    """The parameters that take a text."""
    for parameter, described in op.input_schema["properties"].items():
        if "string" in json.dumps(described):
            yield parameter, described


async def answered(workbench: Workbench, name: str, arguments: dict[str, Any]) -> str:
    """What a tool answers: a result, or an error with a code that is documented for it."""
    try:
        return json.dumps(await workbench.call(name, **arguments), ensure_ascii=False)
    except WorkbenchError as error:
        assert error.code in {*codes_of(TOOLS[name]), *EVERYWHERE, "VALIDATION_ERROR"}
        return f"{error}{error.details}"


@pytest.mark.parametrize("name", TOOLS)
async def test_an_agent_that_was_not_granted_definitions_is_refused(
    prepared: Workbench, admit: Admit, name: str
) -> None:
    agent = await admit("ada", role="planner")
    before = tree(prepared)
    with pytest.raises(WorkbenchError) as caught:
        await prepared.dispatch(agent.caller, name, GOOD[name])
    assert caught.value.code == "FORBIDDEN"
    assert tree(prepared) == before
