"""Commands in a project where no server runs: they open its store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import PLAN, Type, cut_data, data


def test_without_a_server_the_store_is_opened_as_the_operator(run: Type, penguins: Path, tmp_path: Path) -> None:
    assert data(run("--json", "call", "whoami"))["level"] == "operator"
    assert run("agents").out == "No agent has registered yet.\n"
    assert run("approvals").out == "Nothing needs your approval.\n"
    assert run("approve", "--all").out == "Nothing needs your approval.\n"
    assert run("plan", str(penguins)).out.splitlines()[2:4] == ["1     count", "2     judge"]
    (tmp_path / "other.yaml").write_text(PLAN + "  - {name: more, title: M, persona: tester}\n")
    assert run("plan", str(tmp_path / "other.yaml")).err.startswith("PLAN_EXISTS: ")
    assert "+ more: M" in run("plan", "--dry-run", str(tmp_path / "other.yaml")).out
    again = data(run("--json", "plan", str(penguins), "--name", "again"))
    assert again["tasks"] == {"count": 3, "judge": 4}
    for name in ("Ada", "Bob", "Eve"):
        data(run("--json", "call", "register", f"name={name}", "persona_id=implementer", 'capabilities={"x": [1]}'))
    assert "Ada wants to be Ada (implementer), in no session" in run("approvals").out
    answer = run("approve", "1", "--id", "ada", "--role", "planner", "--tool", "read").out
    assert answer.endswith(
        "ada is admitted: planner, persona implementer, read only, sees its own data, in no session\n"
    )
    assert run("reject", "2", "--reason", "No").out == "Rejected 2.\n"
    assert run("approve", "--all", "--kind", "registration").out.count("Eve is admitted: ") == 1
    assert run("revoke", "Eve").out == "Revoked Eve; its token no longer works.\n"
    listed = {agent["name"]: agent for agent in data(run("--json", "agents"))}
    states = {name: agent["registration_status"] for name, agent in listed.items()}
    assert states == {"Ada": "assigned", "Bob": "rejected", "Eve": "revoked"}
    assert (listed["Ada"]["agent_id"], listed["Ada"]["role"], listed["Ada"]["tool"]) == ("ada", "planner", "read")
    assert [agent["name"] for agent in data(run("--json", "agents", "--status", "rejected"))] == ["Bob"]
    assert [a["status"] for a in data(run("--json", "approvals", "--all"))] == ["approved", "rejected", "approved"]


@pytest.mark.usefixtures("penguins")
def test_commands_show_text_and_json_without_a_server(run: Type) -> None:
    assert run("tasks").out.splitlines()[0].split()[:4] == ["id", "title", "status", "persona"]
    assert [task["title"] for task in data(run("--json", "tasks"))] == ["Count them", "Judge the count"]
    assert [task["id"] for task in cut_data(run("--json", "tasks", "--limit", "1"))] == [1]
    assert run("tasks", "--plan", "another").err.startswith("PLAN_NOT_FOUND: ")
    counts = [line.rpartition("  ")[::2] for line in run("status").out.splitlines() if line.startswith("tasks ")]
    assert [(name.strip(), number.strip()) for name, number in counts] == [
        ("tasks blocked", "1"),
        ("tasks pending", "1"),
    ]
    found = data(run("--json", "status"))
    assert (found["server"], found["tasks"]) == (None, {"pending": 2})
    server, store = (line.split() for line in run("status").out.splitlines()[1:3])
    assert (server, store) == (["server", "not", "running"], ["store", ".aiswarm/coordination.db"])
    kinds = [event["kind"] for event in data(run("--json", "events", "--kinds", "task.*,plan.created"))]
    assert kinds == ["task.created", "task.created", "plan.created"]
    assert "task.created" in run("events", "--kinds", "task.*").out
    assert run("sql", "SELECT count(*) AS n FROM tasks").out.split() == ["n", "2"]
    query = "SELECT count(*) AS n, min(title) AS title, max(completed_at) AS latest FROM tasks"
    assert data(run("--json", "sql", query)) == [{"n": 2, "title": "Count them", "latest": None}]
