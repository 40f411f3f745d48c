"""The `workbench` command as a person types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tests.conftest import Command, Ran, Served, git
from workbench.cli import cli, main, parse_arguments
from workbench.errors import BadInput

Type = Callable[..., Ran]


@pytest.fixture
def run(repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Type:
    """`run("tasks", "--limit", "5")`: the command in the project, where no server runs."""
    monkeypatch.setenv("WORKBENCH_PROJECT", str(repository))
    monkeypatch.delenv("WORKBENCH_TOKEN", raising=False)

    def typed(*arguments: str) -> Ran:
        status = 0
        try:
            main(arguments)
        except SystemExit as end:
            status = int(end.code or 0)
        return Ran(status, *capsys.readouterr())

    return typed


def data(ran: Ran) -> Any:
    assert (ran.status, ran.err) == (0, "")
    return json.loads(ran.out)


PLAN = """\
plan: penguins
tasks:
  - {name: count, title: Count them, persona: implementer, worktree: island}
  - {name: judge, title: Judge the count, persona: reviewer, after: [count]}
"""

# Help and usage


@pytest.mark.parametrize("name", cli.commands)
def test_every_command_explains_itself(run: Type, name: str) -> None:
    ran = run(name, "--help")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: workbench {name}")
    explained = cli.commands[name].help
    assert explained
    assert " ".join(explained.split()) in " ".join(ran.out.split())


def test_the_command_itself_lists_all_others(run: Type) -> None:
    for asked in ("--help", "-h"):
        ran = run(asked)
        assert ran.status == 0
        listed = {line.split()[0] for line in ran.out.partition("Commands:")[2].splitlines() if line}
        assert listed == set(cli.commands)
    assert run("--version").out.startswith("workbench, version ")


BAD_USAGE = [
    ["no-such-command"],
    ["tasks", "--no-such-option"],
    ["tasks", "--limit", "many"],
    ["tasks", "one", "two"],
    ["approve"],
    ["approve", "one"],
    ["reject"],
    ["plan"],
    ["plan", "no-such-file.yaml"],
    ["serve", "--port", "65536"],
    ["serve", "--port", "-1"],
    ["demo", "--workers", "0"],
    ["--project", __file__, "status"],
]


@pytest.mark.parametrize("arguments", BAD_USAGE, ids=" ".join)
def test_bad_usage_ends_with_2_and_says_what_is_wrong(run: Type, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert "Error: " in ran.err


# Errors


def test_an_error_is_a_code_and_a_next_step(run: Type) -> None:
    ran = run("approve", "99")
    assert ran == Ran(1, "", "APPROVAL_NOT_FOUND: There is no approval 99.\n")
    ran = run("--json", "approve", "99")
    assert (ran.status, ran.out) == (1, "")
    assert json.loads(ran.err) == {
        "code": "APPROVAL_NOT_FOUND",
        "message": "There is no approval 99.",
        "details": {},
        "status": 404,
    }


def test_every_failure_has_a_code(run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"plan: \xff")
    (tmp_path / "bad.yaml").write_text("plan: x\ntasks: 5\n")
    failures = {
        ("spawn", "implementer"): "NO_SERVER",
        ("mcp",): "NO_SERVER",
        ("terminate", "nobody"): "AGENT_NOT_FOUND",
        ("revoke", "nobody"): "AGENT_NOT_FOUND",
        ("worktrees", "nowhere"): "WORKTREE_NOT_FOUND",
        ("integrate", "nowhere"): "WORKTREE_NOT_FOUND",
        ("discard", "nowhere"): "WORKTREE_NOT_FOUND",
        ("reject", "99"): "APPROVAL_NOT_FOUND",
        ("tasks", "--status", "lost"): "INVALID_ARGUMENTS",
        ("tasks", "--limit", "100000"): "INVALID_ARGUMENTS",
        ("events", "--after", "-1"): "INVALID_ARGUMENTS",
        ("call", "no_such_operation"): "UNKNOWN_OPERATION",
        ("call", "ping", "x"): "INVALID_ARGUMENTS",
        ("call", "ping", "{x"): "INVALID_ARGUMENTS",
        ("call", "ping", '{"x": NaN}'): "INVALID_ARGUMENTS",
        ("sql", "SELEC"): "SQL_FAILED",
        ("plan", str(tmp_path / "bytes.yaml")): "PLAN_INVALID",
        ("plan", str(tmp_path / "bad.yaml")): "PLAN_INVALID",
        ("--project", "/proc/nowhere", "status"): "PROJECT_UNWRITABLE",
    }
    for arguments, code in failures.items():
        ran = run(*arguments)
        assert (ran.status, ran.out, ran.err.partition(":")[0]) == (1, "", code), arguments
    monkeypatch.setenv("WORKBENCH_PORT", "eight")
    assert run("status").err.startswith("BAD_SETTINGS: WORKBENCH_PORT: ")


def test_an_agents_token_needs_the_server(run: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_TOKEN", "wba_" + "x" * 43)
    assert run("tasks").err.startswith("NO_SERVER: ")


# Without a server, on the store itself


def test_without_a_server_the_store_is_opened_as_the_operator(run: Type, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert data(run("--json", "call", "whoami"))["level"] == "operator"
    assert run("agents").out == "No agent has registered yet.\n"
    assert run("approvals").out == "Nothing waits for you.\n"
    assert run("approve", "--all").out == "Nothing waits for you.\n"
    assert run("plan", str(tmp_path / "plan.yaml")).out.splitlines()[1:] == ["1     count", "2     judge"]
    assert run("plan", str(tmp_path / "plan.yaml")).err.startswith("PLAN_EXISTS: ")
    again = data(run("--json", "plan", str(tmp_path / "plan.yaml"), "--name", "again"))
    assert again["tasks"] == {"count": 3, "judge": 4}
    for name in ("Ada", "Bob", "Eve"):
        data(run("--json", "call", "register", f"name={name}", "persona_id=implementer", 'capabilities={"x": [1]}'))
    assert "Ada wants to be Ada (implementer)" in run("approvals").out
    assert run("approve", "1", "--id", "ada", "--role", "planner", "--tool", "read").out.endswith("ada is assigned\n")
    assert run("reject", "2", "--reason", "No").out == "Rejected 2.\n"
    assert run("approve", "--all", "--kind", "registration").out.endswith("Eve is assigned\n")
    assert run("revoke", "Eve").out == "Eve is revoked; its token no longer works.\n"
    listed = {agent["name"]: agent for agent in data(run("--json", "agents"))}
    assert {name: agent["registration_status"] for name, agent in listed.items()} == {
        "Ada": "assigned",
        "Bob": "rejected",
        "Eve": "revoked",
    }
    assert (listed["Ada"]["agent_id"], listed["Ada"]["role"], listed["Ada"]["tool"]) == ("ada", "planner", "read")
    assert [agent["name"] for agent in data(run("--json", "agents", "--status", "rejected"))] == ["Bob"]
    assert [a["status"] for a in data(run("--json", "approvals", "--all"))] == ["approved", "rejected", "approved"]


def test_what_is_shown_is_the_same_as_text_and_as_data(run: Type, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    run("plan", str(tmp_path / "plan.yaml"))
    assert run("tasks").out.splitlines()[0].split()[:4] == ["id", "title", "status", "persona"]
    assert [task["title"] for task in data(run("--json", "tasks"))] == ["Count them", "Judge the count"]
    assert [task["id"] for task in data(run("--json", "tasks", "--limit", "1"))] == [1]
    assert data(run("--json", "tasks", "--plan", "another")) == []
    assert "tasks pending" in run("status").out
    assert data(run("--json", "status"))["tasks"] == {"pending": 2}
    kinds = [event["kind"] for event in data(run("--json", "events", "--kinds", "task.*,plan.created"))]
    assert kinds == ["task.created", "task.created", "plan.created"]
    assert "task.created" in run("events", "--kinds", "task.*").out
    assert run("sql", "SELECT count(*) AS n FROM tasks").out.split() == ["n", "2"]
    assert data(run("--json", "sql", "SELECT title FROM tasks ORDER BY id")) == [
        {"title": "Count them"},
        {"title": "Judge the count"},
    ]


def test_a_worktree_is_made_and_merged_or_given_up(run: Type, repository: Path) -> None:
    island = data(run("--json", "call", "create_worktree", "name=island"))
    (Path(island["path"]) / "count.txt").write_text("344\n")
    git("add", ".", cwd=Path(island["path"]))
    git("commit", "-q", "-m", "Count", cwd=Path(island["path"]))
    assert "island" in run("worktrees").out
    assert data(run("--json", "worktrees", "island"))[0]["ahead"] == 1
    assert run("integrate", "island").out == "Approval 1 merges island into main.\n"
    assert "wb/island/main into main: 1 commits" in run("approvals").out
    assert run("approve", "1").out.endswith("island is integrated\n")
    assert (repository / "count.txt").read_text() == "344\n"
    run("call", "create_worktree", "name=other")
    assert run("discard", "other").out == "other is discarded; the branch wb/other/main is kept.\n"
    assert run("worktrees").out == "There is no active worktree.\n"


# Arguments of `call`


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ([], {}),
        (["name=Ada"], {"name": "Ada"}),
        (["task_id=5", "x=1.5", "y=true", "z=null"], {"task_id": 5, "x": 1.5, "y": True, "z": None}),
        (['title="5"'], {"title": "5"}),
        (["run=a=b"], {"run": "a=b"}),
        (["text="], {"text": ""}),
        (["list=[1, 2]", 'map={"a": []}'], {"list": [1, 2], "map": {"a": []}}),
        (['{"a": {"b": 1}}'], {"a": {"b": 1}}),
        (["  {}"], {}),
    ],
    ids=str,
)
def test_arguments_are_pairs_or_one_object(typed: list[str], read: dict[str, Any]) -> None:
    assert parse_arguments(typed) == read


@pytest.mark.parametrize("typed", [["x"], ["{"], ["a=1", "b"], ["=1", "x"]], ids=str)
def test_other_arguments_are_refused(typed: list[str]) -> None:
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        parse_arguments(typed)


# With a server, in a process of its own


@pytest.mark.anyio
async def test_with_a_server_it_is_the_server_that_is_asked(served: Served, command: Command) -> None:
    ran = await command("--json", "spawn", "implementer", "--name", "ada")
    assert data(ran)["status"] == "assigned"
    [agent] = (await served.workbench.call("list_agents"))["agents"]
    assert agent["agent_id"] == "ada"
    ran = await command("terminate", "ada", "--reason", "Enough")
    assert ran == Ran(0, "ada is ended.\n", "")


def test_no_option_is_without_help_and_no_name_is_taken_twice() -> None:
    options = [option for c in cli.commands.values() for option in c.params if isinstance(option, click.Option)]
    assert all(option.name for option in options)
    for command in cli.commands.values():
        names = [name for parameter in command.params for name in parameter.opts]
        assert len(names) == len(set(names))
