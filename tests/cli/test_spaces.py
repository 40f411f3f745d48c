"""The commands about projects, sessions and teams."""

from __future__ import annotations

from tests.cli.conftest import Type, data


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
