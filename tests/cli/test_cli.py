"""The `workbench` command as a person types it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tests.conftest import Command, Ran, Served, git
from workbench.app import Workbench
from workbench.cli import cli, main, parse_arguments
from workbench.cli.grants import Expiry
from workbench.cli.tasks import NEAR
from workbench.errors import BadInput
from workbench.graph import LIMIT
from workbench.settings import Settings
from workbench.shells.serve import Servers

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
    ["approve", "1", "--expires", "soon"],
    ["approve", "1", "--tool", "all"],
    ["reject"],
    ["grant", "ada"],
    ["move", "ada"],
    ["rules", "add", "night"],
    ["rules", "no-such-command"],
    ["export", "secrets"],
    ["task"],
    ["task", "one"],
    ["depend", "1"],
    ["priority", "1", "high"],
    ["tasks", "--sort", "colour"],
    ["tasks", "--status", "lost"],
    ["personas", "save", "no-such-file.md"],
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
        ("worker", "--persona", "implementer"): "NO_SERVER",
        ("restart", "nobody"): "NO_SERVER",
        ("logs", "nobody"): "AGENT_NOT_FOUND",
        ("terminate", "nobody"): "AGENT_NOT_FOUND",
        ("revoke", "nobody"): "AGENT_NOT_FOUND",
        ("worktrees", "status", "nowhere"): "WORKTREE_NOT_FOUND",
        ("worktrees", "diff", "nowhere"): "WORKTREE_NOT_FOUND",
        ("worktrees", "update", "nowhere"): "WORKTREE_NOT_FOUND",
        ("worktrees", "run", "nowhere", "true"): "WORKTREE_NOT_FOUND",
        ("worktrees", "create", "../x"): "BAD_WORKTREE_NAME",
        ("integrate", "nowhere"): "WORKTREE_NOT_FOUND",
        ("discard", "nowhere"): "WORKTREE_NOT_FOUND",
        ("reject", "99"): "APPROVAL_NOT_FOUND",
        ("agent", "nobody"): "AGENT_NOT_FOUND",
        ("grant", "nobody", "--tool", "read"): "AGENT_NOT_FOUND",
        ("token", "nobody"): "AGENT_NOT_FOUND",
        ("history", "nobody"): "AGENT_NOT_FOUND",
        ("projects", "delete", "nowhere"): "PROJECT_NOT_FOUND",
        ("sessions", "rename", "nowhere", "x"): "SESSION_NOT_FOUND",
        ("teams", "delete", "nowhere"): "TEAM_NOT_FOUND",
        ("contexts", "show", "nowhere"): "CONTEXT_NOT_FOUND",
        ("tasks", "--cursor", "lost"): "BAD_CURSOR",
        ("task", "99"): "TASK_NOT_FOUND",
        ("cancel", "99"): "TASK_NOT_FOUND",
        ("retry", "99"): "TASK_NOT_FOUND",
        ("priority", "99", "1"): "TASK_NOT_FOUND",
        ("assign", "99", "none"): "TASK_NOT_FOUND",
        ("depend", "99", "1"): "TASK_NOT_FOUND",
        ("personas", "show", "nobody"): "PERSONA_NOT_FOUND",
        ("personas", "versions", "nobody"): "PERSONA_NOT_FOUND",
        ("personas", "save", str(tmp_path / "bytes.yaml")): "PERSONA_INVALID",
        ("tasks", "--limit", "100000"): "INVALID_ARGUMENTS",
        ("events", "--after", "-1"): "INVALID_ARGUMENTS",
        ("call", "no_such_operation"): "UNKNOWN_OPERATION",
        ("call", "ping", "x"): "INVALID_ARGUMENTS",
        ("call", "ping", "{x"): "INVALID_ARGUMENTS",
        ("call", "ping", '{"x": NaN}'): "INVALID_ARGUMENTS",
        ("sql", "SELEC"): "SQL_FAILED",
        ("plan", str(tmp_path / "bytes.yaml")): "PLAN_INVALID",
        ("plan", str(tmp_path / "bad.yaml")): "PLAN_INVALID",
        ("--project", "/proc", "status"): "PROJECT_UNWRITABLE",
    }
    for arguments, code in failures.items():
        ran = run(*arguments)
        assert (ran.status, ran.out, ran.err.partition(":")[0]) == (1, "", code), arguments
    monkeypatch.setenv("WORKBENCH_PORT", "eight")
    assert run("status").err.startswith("BAD_SETTINGS: WORKBENCH_PORT: ")


def test_a_project_that_is_not_there_is_refused_and_not_made(
    run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = tmp_path / "no" / "where"
    refused = f"NOT_A_DIRECTORY: {nowhere} is not a directory."
    assert run("--project", str(nowhere), "status").err.startswith(refused)
    monkeypatch.setenv("WORKBENCH_PROJECT", str(nowhere))
    assert run("status").err.startswith(refused)
    assert run("serve", "--port", "0").err.startswith(refused)
    assert run("status", "--help").status == 0
    assert not nowhere.parent.exists()


def test_an_agents_token_needs_the_server(run: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_TOKEN", "wba_" + "x" * 43)
    assert run("tasks").err.startswith("NO_SERVER: ")


def test_the_options_of_the_whole_are_understood_after_a_commands_name_too(
    run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("projects", "add", "Lab")
    run("sessions", "add", "Lab", "Day 1")
    for arguments in (["projects"], ["projects", "list"], ["sessions", "--project", "Lab"]):
        assert len(data(run(*arguments, "--json"))) == 1
        assert run(*arguments, "--json") == run("--json", *arguments)
    assert run("priority", "99", "-5", "--json").err == run("--json", "priority", "99", "-5").err
    assert data(run("--json", "projects", "list", "--project", str(tmp_path))) == []
    assert data(run("--project", "/no/where", "projects", "list", "--json", "--project", str(tmp_path))) == []
    monkeypatch.setenv("WORKBENCH_PROJECT", "/no/where")
    assert data(run("tasks", "--json", "--project", str(tmp_path))) == []
    assert run("tasks", "--project", __file__).status == 2


# Without a server, on the store itself


def test_without_a_server_the_store_is_opened_as_the_operator(run: Type, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert data(run("--json", "call", "whoami"))["level"] == "operator"
    assert run("agents").out == "No agent has registered yet.\n"
    assert run("approvals").out == "Nothing needs your approval.\n"
    assert run("approve", "--all").out == "Nothing needs your approval.\n"
    for _ in range(2):
        assert run("plan", str(tmp_path / "plan.yaml")).out.splitlines()[2:] == ["1     count", "2     judge"]
    (tmp_path / "other.yaml").write_text(PLAN + "  - {name: more, title: M, persona: tester}\n")
    assert run("plan", str(tmp_path / "other.yaml")).err.startswith("PLAN_EXISTS: ")
    assert "+ more: M" in run("plan", "--dry-run", str(tmp_path / "other.yaml")).out
    again = data(run("--json", "plan", str(tmp_path / "plan.yaml"), "--name", "again"))
    assert again["tasks"] == {"count": 3, "judge": 4}
    for name in ("Ada", "Bob", "Eve"):
        data(run("--json", "call", "register", f"name={name}", "persona_id=implementer", 'capabilities={"x": [1]}'))
    assert "Ada wants to be Ada (implementer)" in run("approvals").out
    assert run("approve", "1", "--id", "ada", "--role", "planner", "--tool", "read").out.endswith("ada is assigned\n")
    assert run("reject", "2", "--reason", "No").out == "Rejected 2.\n"
    assert run("approve", "--all", "--kind", "registration").out.endswith("Eve is assigned\n")
    assert run("revoke", "Eve").out == "Revoked Eve; its token no longer works.\n"
    listed = {agent["name"]: agent for agent in data(run("--json", "agents"))}
    assert {name: agent["registration_status"] for name, agent in listed.items()} == {
        "Ada": "assigned",
        "Bob": "rejected",
        "Eve": "revoked",
    }
    assert (listed["Ada"]["agent_id"], listed["Ada"]["role"], listed["Ada"]["tool"]) == ("ada", "planner", "read")
    assert [agent["name"] for agent in data(run("--json", "agents", "--status", "rejected"))] == ["Bob"]
    assert [a["status"] for a in data(run("--json", "approvals", "--all"))] == ["approved", "rejected", "approved"]


def test_a_plan_says_what_happened_to_it_or_would(run: Type, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN)

    def said(*options: str) -> list[str]:
        return run("plan", str(file), *options).out.splitlines()

    new = ["+ count: Count them", "+ judge: Judge the count"]
    table = ["task  name in the plan", "1     count", "2     judge"]
    assert said("--dry-run") == ["Plan penguins: would be created; nothing was changed.", *new]
    assert said() == ["Plan penguins: created, 2 tasks.", *table]
    assert said() == said("--dry-run") == said("--update") == ["Plan penguins: unchanged.", *table]
    file.write_text(PLAN.replace("Count them", "Count all"))
    change = "~ count: title Count them → Count all"
    assert said("--update", "--dry-run") == ["Plan penguins: would be changed; nothing was changed.", change, *table]
    assert said("--update") == ["Plan penguins: changed.", change, *table]
    file.write_text("plan: one\ntasks:\n  - {name: a, title: A, persona: tester}\n")
    assert said()[0] == "Plan one: created, 1 task."
    assert data(run("--json", "plan", str(file), "--dry-run"))["changed"] is False


def test_what_is_shown_is_the_same_as_text_and_as_data(run: Type, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    run("plan", str(tmp_path / "plan.yaml"))
    assert run("tasks").out.splitlines()[0].split()[:4] == ["id", "title", "status", "persona"]
    assert [task["title"] for task in data(run("--json", "tasks"))] == ["Count them", "Judge the count"]
    assert [task["id"] for task in data(run("--json", "tasks", "--limit", "1"))] == [1]
    assert data(run("--json", "tasks", "--plan", "another")) == []
    assert "tasks pending" in run("status").out
    found = data(run("--json", "status"))
    assert (found["server"], found["tasks"]) == (None, {"pending": 2})
    assert run("status").out.splitlines()[2].split() == ["server", "not", "running"]
    kinds = [event["kind"] for event in data(run("--json", "events", "--kinds", "task.*,plan.created"))]
    assert kinds == ["task.created", "task.created", "plan.created"]
    assert "task.created" in run("events", "--kinds", "task.*").out
    assert run("sql", "SELECT count(*) AS n FROM tasks").out.split() == ["n", "2"]
    assert data(run("--json", "sql", "SELECT title FROM tasks ORDER BY id")) == [
        {"title": "Count them"},
        {"title": "Judge the count"},
    ]


def test_a_task_is_shown_steered_and_made_to_wait(run: Type, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    run("plan", str(tmp_path / "plan.yaml"))
    run("call", "register", "name=Ada", "persona_id=implementer")
    run("approve", "1")
    assert run("priority", "1", "-5").out == "Task 1 has priority -5.\n"
    assert run("assign", "1", "Ada").out == "Task 1 is reserved for Ada.\n"
    assert run("assign", "1", "none").out == "Any agent may claim task 1.\n"
    assert run("depend", "2", "1", "--remove").out == "Task 2 depends on no task.\n"
    assert run("depend", "1", "2").out == "Task 1 depends on 2.\n"
    assert run("depend", "2", "1").err.startswith("DEPENDENCY_CYCLE: ")
    assert run("cancel", "2", "--reason", "Not needed").out == "Cancelled task 2.\n"
    shown = run("task", "1").out
    assert shown.startswith("1 Count them\n")
    assert "blocked" in shown
    assert "It has not been claimed yet." in shown
    assert run("retry", "2", "--max-retries", "5").out == "Task 2 is retried.\n"
    told = data(run("--json", "task", "2"))
    assert (told["task"]["max_retries"], told["task"]["status"], told["log"]) == (5, "pending", [])


def test_a_task_says_how_what_keeps_it_waiting_and_what_is_under_it_stand(run: Type) -> None:
    parts = [{"title": "Part", "persona_id": "tester", "parent_task_id": 1}] * 2
    whole = {"title": "Whole", "persona_id": "planner"}
    run("call", "create_tasks", f"tasks={json.dumps([whole])}")
    run("call", "create_tasks", f"tasks={json.dumps(parts)}")
    run("depend", "1", "2", "3")
    run("cancel", "2")
    facts = {" ".join(line.split()) for line in run("task", "1").out.splitlines()}
    assert {"blocked by 2 (cancelled; retry it), 3 (pending)", "subtasks 2 (cancelled), 3 (pending)"} <= facts
    assert "subtasks" not in run("task", "2").out
    assert "blocked by" not in run("task", "2").out
    assert data(run("--json", "task", "1"))["task"]["blocked_by"] == [2, 3]
    many = [{"title": "Part", "persona_id": "tester", "parent_task_id": 3}] * (NEAR + 1)
    run("call", "create_tasks", f"tasks={json.dumps(many)}")
    run("depend", "3", *map(str, range(4, NEAR + 5)))
    facts = {" ".join(line.split()) for line in run("task", "3").out.splitlines()}
    told = ", ".join(f"{number} (pending)" for number in range(4, NEAR + 4))
    assert {f"blocked by {told}, …", f"subtasks {told}, …"} <= facts


def test_a_task_is_cancelled_with_what_is_under_it_and_what_is_to_go_with_it(run: Type) -> None:
    whole = {"title": "Whole", "persona_id": "planner"}
    part = {"title": "Part", "persona_id": "tester", "parent_task_id": 2}
    later = {"title": "Later", "persona_id": "tester", "dependencies": [3], "on_failure": "cancel"}
    for tasks in ([whole, whole], [part], [later]):
        run("call", "create_tasks", f"tasks={json.dumps(tasks)}")
    assert run("cancel", "1").out == "Cancelled task 1.\n"
    assert run("cancel", "2").out == "Cancelled task 2, and with it 3, 4.\n"
    many = [{"title": "Part", "persona_id": "tester", "parent_task_id": 2}] * (NEAR + 1)
    run("call", "create_tasks", f"tasks={json.dumps(many)}")
    run("retry", "2")
    told = ", ".join(map(str, range(5, NEAR + 5)))
    assert run("cancel", "2").out == f"Cancelled task 2, and with it {told}, ….\n"


def test_what_waits_for_what_is_told_of_as_many_tasks_as_can_be_looked_at(run: Type, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    run("plan", str(tmp_path / "plan.yaml"))
    assert run("graph", "--plan", "penguins").out.splitlines() == [
        "id  title            status   after",
        "1   Count them       pending",
        "2   Judge the count  blocked  1",
    ]
    assert data(run("--json", "graph"))["dependencies"] == [[2, 1]]
    many = [{"title": "t", "persona_id": "tester"}] * LIMIT
    run("call", "create_tasks", f"tasks={json.dumps(many)}")
    assert run("graph").out.startswith(f"There are more than {LIMIT} tasks")
    assert len(run("graph", "--plan", "penguins").out.splitlines()) == 3


def test_tasks_are_listed_by_what_they_belong_to_and_in_any_order(run: Type, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    run("plan", str(tmp_path / "plan.yaml"))
    run("priority", "2", "900")

    def listed(*options: str) -> list[int]:
        return [task["id"] for task in data(run("--json", "tasks", *options))]

    assert listed("--sort", "priority") == listed("--sort", "newest") == [2, 1]
    assert listed("--persona", "reviewer") == [2]
    assert listed("--worktree", "island") == [1]
    assert listed("--agent", "ada") == listed("--session", "none") == listed("--parent", "1") == []
    assert run("tasks").out.splitlines()[2].split()[:5] == ["2", "Judge", "the", "count", "blocked"]
    for order, ids in (("id", [1, 2]), ("priority", [2, 1])):
        more = run("tasks", "--sort", order, "--limit", "1").out.splitlines()[-1]
        assert more.startswith("… more: --cursor ")
        assert listed("--sort", order, "--limit", "1") == ids[:1]
        assert listed("--sort", order, "--limit", "1", "--cursor", more.split()[-1]) == ids[1:]


def test_no_tasks_are_told_from_none_that_match(run: Type) -> None:
    for command in ("tasks", "graph"):
        assert run(command).out == "There are no tasks. Create some with a plan.\n"
        assert run(command, "--plan", "penguins").out == "No task matches.\n"
    assert run("tasks", "--sort", "newest", "--limit", "5").out == run("tasks").out
    assert run("tasks", "--status", "failed").out == "No task matches.\n"


def test_the_states_of_tasks_are_named_by_the_help_and_where_one_is_wrong(run: Type) -> None:
    for told in (run("tasks", "--help").out, run("tasks", "--status", "lost").err):
        assert "in_progress" in told
        assert "cancelled" in told


def test_personas_are_listed_shown_and_saved(run: Type, tmp_path: Path) -> None:
    (tmp_path / "ornithologist.md").write_text("---\nname: Ornithologist\n---\nKnow your birds.\n")
    assert "implementer" in run("personas").out
    said = run("personas", "save", str(tmp_path / "ornithologist.md")).out
    assert said == "Saved persona ornithologist; its agents are workers.\n"
    assert "Know your birds." in run("personas", "show", "ornithologist").out
    run("personas", "save", str(tmp_path / "ornithologist.md"), "--id", "tester")
    assert [one["source"] for one in data(run("--json", "personas", "versions", "tester"))] == ["project", "built-in"]


def test_a_worktree_is_made_and_merged_or_given_up(run: Type, repository: Path) -> None:
    island = data(run("--json", "call", "create_worktree", "name=island"))
    (Path(island["path"]) / "count.txt").write_text("344\n")
    git("add", ".", cwd=Path(island["path"]))
    git("commit", "-q", "-m", "Count", cwd=Path(island["path"]))
    assert "island" in run("worktrees").out
    assert data(run("--json", "worktrees", "status", "island"))["ahead"] == 1
    assert "count.txt" in run("worktrees", "status", "island").out
    assert "+344" in run("worktrees", "diff", "island", "count.txt").out
    assert run("integrate", "island").out == "To merge island into main, approve 1.\n"
    assert "wb/island/main into main: 1 commits" in run("approvals").out
    assert run("approve", "1").out.endswith("island is integrated\n")
    assert (repository / "count.txt").read_text() == "344\n"
    run("call", "create_worktree", "name=other")
    assert run("discard", "other").out == "Discarded other; the branch wb/other/main is kept.\n"
    assert run("worktrees").out == "There are no active worktrees.\n"


def test_worktrees_are_made_compared_updated_and_cleared_up(run: Type, repository: Path) -> None:
    assert run("worktrees", "conflicts").out == "No conflicts are predicted.\n"
    assert run("worktrees", "create", "one", "--from", "main").out.startswith("Created one on branch wb/one/main in /")
    run("worktrees", "create", "two", "--branch", "feature/two")
    for name in ("one", "two"):
        place = repository / ".aiswarm" / "worktrees" / name
        (place / "README.md").write_text(f"# {name}\n")
        git("commit", "-q", "-a", "-m", name, cwd=place)
    assert run("worktrees", "conflicts").out.splitlines()[1].split() == ["one", "two", "README.md"]
    assert run("worktrees", "update", "one").out == "one is up to date.\n"
    (repository / ".aiswarm" / "worktrees" / "two" / "draft.txt").write_text("draft\n")
    assert "+draft" in run("worktrees", "diff", "two", "--uncommitted").out
    assert run("worktrees", "discard", "two").err.startswith("WORKTREE_DIRTY")
    said = run("worktrees", "discard", "two", "--force", "--delete-branch").out
    assert said.startswith("Discarded two; the branch feature/two is deleted. What existed nowhere else is saved in /")
    assert "trash" in run("worktrees", "prune").out
    assert run("worktrees", "prune", "--yes").out.splitlines()[-1].endswith("freed")
    assert run("worktrees", "integrate", "one", "--fast-forward").status == 0
    assert run("approve", "1", "--despite-gates").out.endswith("one is integrated\n")
    assert (repository / "README.md").read_text() == "# one\n"


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
    limits = ("--wall", "60", "--memory", "2G", "--env", "A=b=c")
    ran = await command("--json", "spawn", "implementer", "--name", "bob", "--new-worktree", *limits)
    assert data(ran)["worktree"] == "bob"
    found = data(await command("--json", "logs", "bob", "--lines", "5"))
    assert found["limits"] == {"cpu_seconds": None, "memory_bytes": 2 * 10**9, "wall_seconds": 60, "tasks": None}
    ran = await command("ps")
    assert [line.split()[:2] for line in ran.out.splitlines()[1:3]] == [["ada", "running"], ["bob", "running"]]
    ran = await command("restart", "ada")
    assert ran.out.startswith("ada runs as process ")
    ran = await command("terminate", "ada", "--reason", "Enough")
    assert ran == Ran(0, "Ended ada.\n", "")
    assert {one["agent_id"]: one["state"] for one in data(await command("--json", "ps", "--all"))} == {
        "ada": "ended",
        "bob": "running",
    }
    following = asyncio.create_task(command("logs", "bob", "--follow"))
    while not following.done():
        await command("terminate", "bob")
        await asyncio.wait({following}, timeout=1)
    assert "admitted as bob" in following.result().out
    assert "script" in (await command("profiles")).out


@pytest.mark.anyio
async def test_of_a_long_log_the_end_is_shown_and_as_much_as_is_asked_for(served: Served, command: Command) -> None:
    made = await served.workbench.call("register", name="ada", persona_id="implementer")
    await served.workbench.call("approve", approval_id=made["approval_id"])
    ada = await served.workbench.identify(made["token"])
    await served.workbench.call("create_task", title="Talk", persona_id="implementer")
    await served.workbench.dispatch(ada, "claim_task", {})
    for number in range(1, 31):
        await served.workbench.dispatch(ada, "report_task_progress", {"task_id": 1, "progress_note": f"note-{number}"})
    for options, first in (((), 11), (("--log", "3"), 28), (("--log", "30"), 1), (("--log", "500"), 1)):
        out = (await command("task", "1", *options)).out
        assert [word for word in out.split() if word.startswith("note-")] == [f"note-{n}" for n in range(first, 31)]
        assert ("lines; --log shows more" in out) == (first > 1)
    assert len(data(await command("--json", "task", "1", "--log", "3"))["log"]) == 3
    assert "note-" not in (await command("task", "1", "--log", "0")).out


def test_no_option_is_without_help_and_no_name_is_taken_twice() -> None:
    options = [option for c in cli.commands.values() for option in c.params if isinstance(option, click.Option)]
    assert all(option.name for option in options)
    for command in cli.commands.values():
        names = [name for parameter in command.params for name in parameter.opts]
        assert len(names) == len(set(names))


# Admission, as the desk does it


def test_an_agent_is_admitted_with_every_choice_and_changed_later(run: Type) -> None:
    run("projects", "add", "Lab")
    run("sessions", "add", "Lab", "Day 1")
    run("sessions", "add", "Lab", "Day 2")
    run("teams", "add", "Night", "--session", "Day 1")
    run("call", "register", "name=Ada")
    choices = ("--id", "ada", "--team", "Night", "--persona", "reviewer", "--tool", "read")
    assert run("approve", "1", *choices, "--access", "team_level", "--expires", "2h").out.endswith("ada is assigned\n")
    ada = data(run("--json", "agent", "ada"))["agent"]
    assert (ada["session"], ada["team"], ada["persona_id"]) == ("Day 1", "Night", "reviewer")
    assert (ada["tool"], ada["access_level"]) == ("read", "team_level")
    assert ada["expires_at"] is not None

    assert run("grant", "ada", "--id", "first", "--tool", "write", "--expires", "never").out == "Changed ada.\n"
    assert run("move", "first", "--session", "Day 2", "--team", "none").out == "Moved first.\n"
    first = data(run("--json", "agent", "first"))["agent"]
    assert (first["tool"], first["expires_at"], first["session"], first["team"]) == ("write", None, "Day 2", None)
    assert "agent.updated" in run("history", "first").out
    assert len(run("history", "first", "--limit", "1").out.splitlines()) == 2
    assert run("agent", "first").out.startswith("first\n")
    told = run("token", "first").out
    assert told.startswith("wba_")
    assert run("token", "first").out != told


def test_many_are_decided_at_once_and_each_answer_is_shown(run: Type) -> None:
    for name in ("Ada", "Bob", "Eve", "Joe"):
        run("call", "register", f"name={name}")
    ran = run("approve", "1", "2", "99")
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.splitlines()[1:] == [
        "1   Ada is assigned",
        "2   Bob is assigned",
        "99  APPROVAL_NOT_FOUND: There is no approval 99.",
    ]
    assert run("approve", "3", "4", "--id", "one").status == 2
    assert [d["ok"] for d in data(run("--json", "reject", "--all", "--reason", "Enough"))] == [True, True]
    assert run("reject", "--all").out == "Nothing needs your approval.\n"


def test_rules_admit_and_are_listed_and_removed(run: Type) -> None:
    assert run("rules").out == "There are no rules: you admit every agent yourself.\n"
    run("rules", "add", "night", "worker-*", "--tool", "read", "--expires", "8h")
    words = run("rules", "list").out.splitlines()[1].split()
    assert words == ["night", "worker-*", "this", "machine", "tool", "read,", "expires_in_seconds", "28800"]
    assert run("rules", "remove", "night").out == "Removed rule night.\n"
    assert run("rules", "remove", "night").err.startswith("RULE_NOT_FOUND: ")
    assert run("allowlist").out == "The allowlist is empty: every agent may act.\n"
    run("allowlist", "add", "ada")
    assert run("allowlist").out.splitlines()[1].split()[0] == "ada"
    run("allowlist", "remove", "ada")
    assert data(run("--json", "allowlist"))["ids"] == []


def test_projects_sessions_and_teams_are_made_named_deleted_and_restored(run: Type) -> None:
    assert run("projects").out.startswith("There are no projects.")
    project = data(run("--json", "projects", "add", "Lab", "--description", "Penguins"))
    session = data(run("--json", "sessions", "add", "Lab", "Day 1"))
    team = data(run("--json", "teams", "add", "Night", "--session", session["id"]))
    for noun, made in (("projects", project), ("sessions", session), ("teams", team)):
        renamed = data(run("--json", noun, "rename", made["id"], f"{made['name']} b"))
        assert renamed["name"] == f"{made['name']} b"
        assert run(noun, "delete", made["id"]).status == 0
        assert data(run("--json", noun)) == []
        assert [one["id"] for one in data(run("--json", noun, "--deleted"))] == [made["id"]]
        assert run(noun, "restore", made["id"]).out == f"Restored {made['id']}.\n"
        assert [one["id"] for one in data(run("--json", noun, "list", "--search", made["name"]))] == [made["id"]]
    assert run("teams", "move", team["id"], "none").status == 0
    assert data(run("--json", "teams"))[0]["session_id"] is None


def test_a_list_that_is_cut_short_says_so(run: Type) -> None:
    for number in range(3):
        run("projects", "add", f"p{number}")
    assert run("projects", "--limit", "1").out.splitlines()[-1] == "… and 2 more"


def test_contexts_are_listed_found_shown_deleted_and_restored(run: Type) -> None:
    run("projects", "add", "Lab")
    run("sessions", "add", "Lab", "Day 1")
    content = '{"title": "Bills", "content": "Longer in the north."}'
    made = data(run("--json", "call", "write", "session_id=Day 1", f"content={content}"))["context_id"]
    assert [one["id"] for one in data(run("--json", "contexts", "search", "north"))] == [made]
    assert run("contexts", "search", "south").out == "No context matches.\n"
    assert run("contexts", "show", made).out == "Bills\n\nLonger in the north.\n"
    run("contexts", "delete", made)
    assert data(run("--json", "contexts")) == []
    run("contexts", "restore", made)
    assert "Bills" in run("contexts").out


def test_rows_are_exported_and_numbers_shown(run: Type, tmp_path: Path) -> None:
    run("projects", "add", "Lab")
    assert run("export", "projects").out.splitlines()[0].startswith("id,name,")
    assert run("export", "projects", "--format", "json", "-o", str(tmp_path / "p.json")).status == 0
    assert [one["name"] for one in json.loads((tmp_path / "p.json").read_text())] == ["Lab"]
    assert "commit ms p95" in run("performance").out


def test_migrations_are_listed_and_an_older_database_must_be_one(run: Type, tmp_path: Path) -> None:
    listed = data(run("--json", "migrate", "--status"))
    assert listed[0]["migration_name"] == "001_initial_schema"
    assert all(one["success"] for one in listed)
    assert run("migrate").out == f"The store is up to date; its latest migration is {listed[-1]['migration_name']}.\n"
    (tmp_path / "old.db").write_text("not a database")
    assert run("migrate", "--from", str(tmp_path / "old.db")).err.startswith("NOT_A_DATABASE: ")
    assert run("migrate", "--from", str(tmp_path / "old.db"), "--status").status == 2


@pytest.mark.parametrize(
    ("typed", "choices"),
    [
        ("30m", {"expires_in_seconds": 1_800}),
        ("2h", {"expires_in_seconds": 7_200}),
        ("7d", {"expires_in_seconds": 604_800}),
        ("never", {"expires_at": None}),
        ("2030-01-31T18:00:00Z", {"expires_at": "2030-01-31T18:00:00Z"}),
    ],
)
def test_an_expiry_is_a_duration_a_date_or_never(typed: str, choices: dict[str, Any]) -> None:
    assert Expiry().convert(typed, None, None) == choices


@pytest.mark.parametrize("typed", ["soon", "2x", "-1h", "", "1h30m"])
def test_another_expiry_is_refused(typed: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        Expiry().convert(typed, None, None)


@pytest.mark.anyio
async def test_how_things_stand_names_the_server(served: Served, command: Command) -> None:
    assert ["server", served.info.url] in [line.split() for line in (await command("status")).out.splitlines()]


@pytest.mark.anyio
async def test_how_to_connect_is_printed_to_be_copied(served: Served, command: Command) -> None:
    ran = await command("connect")
    assert served.info.mcp_url in ran.out
    assert "# Claude Code" in ran.out


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("end", "ran"),
    [
        ("true", Ran(0, "id  outcome\n1   lab is integrated\n", "")),
        ("false", Ran(1, "", "GATES_FAILED: The gates did not pass on the merge with the newest target.\n")),
    ],
)
async def test_an_approved_merge_is_waited_for(settings: Settings, command: Command, end: str, ran: Ran) -> None:
    gate = f'until test -e "$HOME/go"; do sleep 0.05; done; {end}'
    gated = settings.model_copy(update={"integration_gates": (gate,)})
    async with Workbench.open(gated) as workbench, Servers(workbench) as servers:
        await servers.start(0)
        made = await workbench.call("create_worktree", name="lab")
        git("commit", "--allow-empty", "-qm", "Count", cwd=Path(made["path"]))
        await workbench.call("integrate_worktree", worktree_name="lab")
        approving = asyncio.create_task(command("approve", "1"))
        home = settings.gates / "1" / "scratch"
        while (await workbench.call("list_approvals"))["approvals"] or not home.exists():
            await asyncio.sleep(0.02)
        (home / "go").touch()
        assert await approving == ran
