"""Messages of errors name operations only in hints, which each shell writes in the words of its users."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from docs.generator import ROOT
from docs.generator.op_codes import parsed
from kernel_ext.wording import in_objects
from tests.cli.conftest import PLAN, Type
from workbench import errors
from workbench.cli import cli
from workbench.errors import Conflict, Hint, NotFound, from_dict
from workbench.ops import collect
from workbench.present.declared import commands_of_operations
from workbench.rules.wire.message import error as frame
from workbench.rules.wording import error_in_commands
from workbench.services import SERVICES

ERRORS = {cls.__name__ for cls in errors.WorkbenchError.__subclasses__()}
OPERATIONS = collect(SERVICES)
OF_OPERATIONS = re.compile(
    rf"(?<!call )\b({'|'.join(name for name in OPERATIONS if '_' in name)})\b|\b[a-z_]+=true\b|GET /api/ops"
)
CHOICES = {"despite_gates"}
"""What `approve` takes within a parameter."""


@cache
def parameters() -> set[str]:
    """The names of all parameters of operations; to make all schemas takes long."""
    return {name for op in OPERATIONS.values() for name in op.input_schema.get("properties", {})}


class NamedOperation(NamedTuple):
    """A hint in the code."""

    place: str
    operation: str
    sentence: str
    typed: str
    arguments: set[str]


@cache
def all_calls() -> list[tuple[str, str, ast.Call]]:
    """Every call of something by its name in the code: the name, and the place."""
    return [
        (node.func.id, f"{path.name}:{node.lineno}", node)
        for package in ("workbench", "kernel_ext")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]


def calls(names: set[str]) -> Iterator[tuple[str, ast.Call]]:
    """Where the code makes one of these, with the place."""
    return ((place, call) for name, place, call in all_calls() if name in names)


def text(node: ast.expr) -> str:
    """A string of the code; `x` stands for values."""
    match node:
        case ast.Constant(value=str() as value):
            return value
        case ast.JoinedStr(values=parts):
            return "".join(text(part) for part in parts)
        case ast.BinOp(left=left, right=right):
            return text(left) + text(right)
    return "x"


def hints() -> Iterator[NamedOperation]:
    """The hints whose words are in the code."""
    for place, call in calls({"Hint"}):
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            continue
        operation, sentence, typed, *_ = [*map(text, call.args), *("", "{} lists them.", "")[len(call.args) :]]
        yield NamedOperation(place, operation, sentence, typed, {one.arg for one in call.keywords if one.arg})


@pytest.mark.long
def test_no_message_of_an_error_names_an_operation_outside_of_its_hint() -> None:
    messages = [(place, text(argument)) for place, call in calls(ERRORS) for argument in call.args]
    assert len(messages) > 1000
    assert [found for found in messages if OF_OPERATIONS.search(found[1])] == []


def test_each_hint_names_an_operation_that_exists_once_with_arguments_that_it_takes() -> None:
    found = list(hints())
    assert len(found) > 40
    for hint in found:
        assert hint.operation in {*OPERATIONS, "", "x"}, hint
        op = OPERATIONS.get(hint.operation)
        assert hint.arguments <= (set(op.input_schema["properties"]) if op else parameters() | CHOICES), hint
        shown = hint.typed or hint.sentence
        assert hint.sentence.count("{}") == 1 or hint.typed, hint
        assert shown.count("{}") <= 1, hint
        assert not OF_OPERATIONS.search(shown), hint


def test_commands_named_in_hints_exist() -> None:
    typed = [words for hint in hints() for words in re.findall("`workbench ([^`]+)`", hint.typed)]
    assert typed
    assert [words for words in typed if not exists(re.sub(r" ([A-Z]+|x)\b", "", words))] == []


GATES = Conflict("GATES_FAILED", "Gates failed: a.", Hint("", "Fix them, or approve with {}.", despite_gates=True))
DELETED = NotFound("TEAM_NOT_FOUND", "There is no team 'list_teams'.", Hint("list_teams", deleted=True))
TASKS = NotFound("TASK_NOT_FOUND", "No task, `workbench spawn`.", Hint("list_tasks"))
KOI = Conflict(
    "KOI_RID_UNKNOWN", "What RID?", Hint("join_network", "Give {}(x=…).", "Give `workbench koi join --rid X`.")
)


@pytest.mark.parametrize(
    ("error", "agents", "shell", "magic", "notebook"),
    [
        (
            GATES,
            "Fix them, or approve with despite_gates=true.",
            "Fix them, or approve with --despite-gates.",
            "Fix them, or approve with --despite-gates.",
            "Fix them, or approve with despite_gates=True.",
        ),
        (
            DELETED,
            "There is no team 'list_teams'. list_teams with deleted=true lists them.",
            "There is no team 'list_teams'. `workbench teams` with --deleted lists them.",
            "There is no team 'list_teams'. `%workbench teams` with --deleted lists them.",
            "There is no team 'list_teams'. list_teams with deleted=True lists them.",
        ),
        (
            TASKS,
            "No task, `workbench spawn`. list_tasks lists them.",
            "No task, `workbench spawn`. `workbench tasks` lists them.",
            "No task, `%workbench spawn`. `%workbench tasks` lists them.",
            "No task, `workbench spawn`. wb.tasks lists them.",
        ),
        (
            KOI,
            "Give join_network(x=…).",
            "Give `workbench koi join --rid X`.",
            "Give `%workbench koi join --rid X`.",
            "Give join_network(x=…).",
        ),
    ],
)
def test_each_shell_shows_a_hint_in_the_words_of_its_users(
    error: errors.WorkbenchError, agents: str, shell: str, magic: str, notebook: str
) -> None:
    received = from_dict(error.as_dict())
    assert received.message.endswith(agents)
    assert error_in_commands(received).message.endswith(shell)
    assert error_in_commands(received, "%workbench").message.endswith(magic)
    assert in_objects(received).message.endswith(notebook)


def test_a_hint_arrives_with_a_copy_of_its_error_and_in_a_frame() -> None:
    longer = TASKS.with_message(f"Change 1: {TASKS.message}", change=1)
    for received in (longer, pickle.loads(pickle.dumps(longer)), from_dict(frame(longer, "read"))):
        assert error_in_commands(received).message == f"Change 1: {error_in_commands(TASKS).message}"
        assert received.details == {"change": 1}
    assert from_dict({"code": "OLD", "message": "Old.", "hint": {"operation": "list_tasks"}}).hint is None


def test_a_secret_is_masked_in_the_hint_too() -> None:
    error = Conflict(
        "TAKEN", "s3cret is taken.", Hint("list_tasks", "{} lists s3cret.", "{} has s3cret.", name="s3cret")
    )
    error.mask(lambda text: text.replace("s3cret", "***"))
    assert "s3cret" not in f"{error} {error.as_dict()}"
    assert error_in_commands(error).message == "*** is taken. `workbench tasks` with --name *** has ***."


def test_commands_named_in_errors_exist() -> None:
    assert [command for command in commands_of_operations().values() if not exists(command)] == []


def exists(command: str) -> bool:
    """Whether there is a command, with the options that are given."""
    found: click.Command = cli
    for word in command.split():
        if word.startswith("--"):
            found = found.commands["list"] if isinstance(found, click.Group) else found
            if not any(word in parameter.opts for parameter in found.params):
                return False
        elif isinstance(found, click.Group):
            if word not in found.commands:
                return False
            found = found.commands[word]
    return True


def test_an_error_names_the_command_to_run(run: Type) -> None:
    refused = {
        ("agent", "nobody"): "AGENT_NOT_FOUND: There is no agent 'nobody'. `workbench agents` lists them.",
        ("task", "9"): "TASK_NOT_FOUND: There is no task 9. `workbench tasks` lists the tasks.",
        ("rules", "remove", "night"): "RULE_NOT_FOUND: There is no rule 'night'. `workbench rules` lists them.",
        ("spawn", "implementer"): "NO_SERVER: `workbench spawn` needs the running servers. ",
        ("tasks", "--limit", "100000"): "INVALID_ARGUMENTS: --limit: must be at most 1000.",
        ("call", "list_task"): "UNKNOWN_OPERATION: There is no operation 'list_task'. Did you mean list_tasks",
        ("call", "get_task", "task_id=9"): "TASK_NOT_FOUND: There is no task 9. list_tasks lists the tasks.",
        ("approve", "ada"): "APPROVAL_NOT_FOUND: No request of 'ada' waits for a decision. `workbench approvals` ",
    }
    for arguments, message in refused.items():
        assert run(*arguments).err.startswith(message), arguments


def test_requests_are_approved_and_rejected_by_the_name_of_their_agent(run: Type) -> None:
    for name in ("ada", "bob", "bob", "eve"):
        assert run("call", "register", f"name={name}").status == 0
    assert "ada is admitted: " in run("approve", "ada").out
    assert run("reject", "eve", "--reason", "no").out == "Rejected 4.\n"
    ran = run("approve", "bob")
    assert ran.err == "AMBIGUOUS_NAME: 2 requests are about 'bob': 2, 3. Give the id of one.\n"
    assert "bob is admitted: " in run("approve", "2").out
    assert run("approve", "ada").err.startswith("APPROVAL_NOT_FOUND: ")


def test_an_update_of_a_plan_names_its_option(run: Type, penguins: Path) -> None:
    penguins.write_text(PLAN.replace("Count them", "Count all"))
    assert run("plan", str(penguins)).err == (
        "PLAN_EXISTS: Another plan 'penguins' already exists. Give this one another name, or give --update to change "
        "that plan.\n"
    )
