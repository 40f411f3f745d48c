"""Messages of the command line name commands, not operations and their arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from tests.cli.conftest import PLAN, Type
from tests.docs import ROOT
from workbench import errors
from workbench.cli import cli
from workbench.ops import collect
from workbench.present.declared import commands_of_operations
from workbench.rules.wording import HAND_WRITTEN, commands, in_commands
from workbench.services import SERVICES

ERRORS = {cls.__name__ for cls in errors.WorkbenchError.__subclasses__()}
OPERATIONS = [name for name in collect(SERVICES) if "_" in name]
OF_OPERATIONS = re.compile(rf"(?<!call )\b({'|'.join(OPERATIONS)})\b|\b[a-z_]+=true\b|GET /api")


UNASKED = {"cli", "worker", "client", "legacy", "shells"}
"""What does not answer commands."""


def messages() -> Iterator[tuple[str, str]]:
    """Every sentence in the code that is part of a message of an error, with its place; `x` stands for values."""
    package = ROOT / "workbench"
    for path in sorted(package.rglob("*.py")):
        if UNASKED & {*path.relative_to(package).parts}:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS | {"already_exists"}:
                for argument in node.args:
                    yield f"{path.name}:{node.lineno}", text(argument)


def text(node: ast.expr) -> str:
    """A string of the code."""
    match node:
        case ast.Constant(value=str() as value):
            return value
        case ast.JoinedStr(values=parts):
            return "".join(text(part) for part in parts)
        case ast.BinOp(left=left, right=right):
            return text(left) + text(right)
    return "x"


def test_errors_of_commands_name_no_operation() -> None:
    found = list(messages())
    assert sum(bool(OF_OPERATIONS.search(message)) for _, message in found) > 10, "operations do name others"
    left = {place: in_commands(message) for place, message in found if OF_OPERATIONS.search(in_commands(message))}
    assert left == {}


def test_quoted_words_in_an_error_are_not_reworded() -> None:
    messages = [
        "/data/list_tasks.ipynb cannot be read: No such file or directory.",
        "The worktree lab and main both changed get_task.py.",
        "The worktree lab and main both changed export_plan/notes.txt.",
        "There is no run 'create_worktree'.",
        'Referenced column "create_plan" not found in FROM clause.',
        "row 1: registration_status: unknown name.",
        "line 4: 'x' comes after 'list_agents', which is not in the plan.",
    ]
    assert [in_commands(message) for message in messages] == messages


def test_commands_named_in_errors_exist() -> None:
    assert commands().keys() - collect(SERVICES).keys() == set()
    assert [command for command in commands().values() if not exists(command)] == []


def test_no_row_repeats_what_an_operation_declares() -> None:
    declared = commands_of_operations()
    assert {name for name, command in HAND_WRITTEN.items() if declared.get(name) == command} == set()


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
