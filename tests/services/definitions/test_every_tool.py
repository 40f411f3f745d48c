"""All tools that manage definitions, with good arguments and with bad ones of every kind.

The cases are derived from the catalogue and `rows.py`: a tool without a row fails.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docs.generator.op_codes import EVERYWHERE
from docs.generator.pages import documented_codes
from tests import given
from tests.conftest import git
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

UNKNOWN_TARGETS = (
    "no-such-agent",
    "./agents/no-such-agent",
    "019b0000-0000-7000-8000-000000000000",
    f"{REVIEWER}/agent.yaml",
    f"{REVIEWER}/rules",
)
DESTRUCTIVE = ("delete", "uninstall", "revoke", "migrate", "bulk")
"""How the names of the tools that destroy something begin."""

Tree = dict[str, bytes]


@pytest.fixture
async def prepared(workbench: Workbench) -> Workbench:
    """An open project with a definition that has one of everything, and a file that does not belong to it; committed as
    it was created."""
    for name, arguments in PREPARATION:
        await workbench.call(name, **arguments)
        if name == "agent_create":
            git("add", "--all", "--force", ".aiswarm/agents", cwd=workbench.settings.project)
            git("commit", "--quiet", "--message", "Add a definition", cwd=workbench.settings.project)
    (workbench.settings.home / "agents" / "old.yaml").write_text(OLDER)
    (workbench.settings.project / "secret.md").write_text(SECRET)
    return workbench


@pytest.fixture
def saved(prepared: Workbench, tmp_path: Path) -> Path:
    """The definitions of the project as they are at first."""
    return Path(shutil.copytree(prepared.settings.home / "agents", tmp_path / "saved"))


def tree(workbench: Workbench) -> Tree:
    """Every file of the project but those of the store."""
    project, home = workbench.settings.project, workbench.settings.home
    files = [path for path in project.rglob("*") if path.is_file() and not path.is_symlink()]
    own = [path for path in files if path.parent != home and ".workbench" not in path.parts]
    return {path.relative_to(project).as_posix(): path.read_bytes() for path in own}


def restore(workbench: Workbench, saved: Path) -> None:
    """Let the definitions be as they were saved."""
    shutil.rmtree(workbench.settings.home / "agents")
    shutil.copytree(saved, workbench.settings.home / "agents")


def test_every_tool_has_a_row_of_arguments() -> None:
    assert sorted(GOOD) == sorted(TOOLS)


async def test_every_tool_keeps_its_promises_with_good_arguments(prepared: Workbench, saved: Path) -> None:
    failures = []
    for op in sorted(TOOLS.values(), key=lambda op: op.destructive):  # what they destroy may be what others need
        name, before = op.name, tree(prepared)
        result = await prepared.call(name, **GOOD[name])
        promises = {
            "fits its schema": Draft202012Validator(op.output_schema).is_valid(result),
            "tells no secret": LITERAL not in json.dumps(result),
            "changes files if it shall": (tree(prepared) == before) == (op.reads or name in CHANGE_NO_FILES),
            "is named for what it destroys": not op.destructive or name.partition("_")[2].startswith(DESTRUCTIVE),
        }
        failures += [f"{name}: not {promise}" for promise, is_kept in promises.items() if not is_kept]
        restore(prepared, saved)
    assert failures == []


async def test_bad_arguments_are_refused_and_change_nothing(prepared: Workbench) -> None:
    before, failures = tree(prepared), []
    for name in TOOLS:
        for arguments, code, said in bad_arguments(name):
            error = await given.refusal(prepared.call(name, **arguments))
            json.dumps(error.as_dict())
            if error.code != code or said not in error.message or tree(prepared) != before:
                failures.append((name, arguments, error))
    assert failures == []


def bad_arguments(name: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Arguments of a tool that are missing, of a wrong type, unknown, or that name what does not exist; the code of the
    error, and what is in its message."""
    op, good = TOOLS[name], GOOD[name]
    for missing in op.input_schema.get("required", []):
        yield {key: value for key, value in good.items() if key != missing}, "VALIDATION_ERROR", missing
    for parameter, wrong in wrong_types(op):
        code = "CONFIRMATION_REQUIRED" if parameter == "confirm" else "VALIDATION_ERROR"
        yield {**good, parameter: wrong}, code, parameter
    yield {**good, "unknown": 1}, "VALIDATION_ERROR", "unknown"
    for parameter, target in product(sorted(op.parameters & TARGETS), UNKNOWN_TARGETS):
        yield {**good, parameter: target}, "AGENT_NOT_FOUND", ""
    for parameter in sorted(op.parameters & UNKNOWN.keys()):
        if name not in NULL_IF_UNKNOWN and NAMES_NEW.get(name) != parameter:
            yield {**good, parameter: "no-such-part"}, UNKNOWN[parameter], ""


def wrong_types(op: Op) -> Iterator[tuple[str, Any]]:
    """Each parameter with values that its JSON Schema excludes, and that are no spelling of one that it allows."""
    schema = op.input_schema
    for parameter, described in schema["properties"].items():
        valid = Draft202012Validator({**described, "$defs": schema.get("$defs", {})})
        for wrong in ([{"no": ["such"]}], {"no": ["such"]}, "no such thing", None):
            if not valid.is_valid(wrong):
                yield parameter, wrong


async def test_reading_a_missing_part_returns_null(prepared: Workbench) -> None:
    for name in NULL_IF_UNKNOWN:
        (parameter,) = TOOLS[name].parameters & UNKNOWN.keys()
        assert {*(await prepared.call(name, **{**GOOD[name], parameter: "no-such-part"})).values()} == {None}, name


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


@pytest.mark.timeout(400)
async def test_hostile_values_disclose_and_destroy_nothing(prepared: Workbench, saved: Path) -> None:
    before, told, lost = tree(prepared), [], []
    for name, op in TOOLS.items():
        for parameter, value in product(text_parameters(op), HOSTILE):
            answer = await answered(prepared, name, {**GOOD[name], parameter: value})
            if SECRET in answer or LITERAL in answer:
                told.append((name, parameter, value))
        if name != "agent_delete":
            info = await prepared.call("agent_get_info", agentTarget=REVIEWER)
            lost += [name] if info["name"] != "Reviewer" else []
        after = tree(prepared)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        lost += [(name, path) for path in changed if not path.startswith(".aiswarm/agents/")]
        restore(prepared, saved)
    assert (told, lost) == ([], [])


def text_parameters(op: Op) -> list[str]:
    """The parameters that take a text."""
    properties = op.input_schema["properties"].items()
    return [parameter for parameter, described in properties if "string" in json.dumps(described)]


async def answered(workbench: Workbench, name: str, arguments: dict[str, Any]) -> str:
    """The answer of a tool: a result, or an error with a code that is documented for it."""
    try:
        return json.dumps(await workbench.call(name, **arguments), ensure_ascii=False)
    except WorkbenchError as error:
        assert error.code in {*documented_codes()[name], *EVERYWHERE, "VALIDATION_ERROR"}
        return f"{error}{error.details}"
