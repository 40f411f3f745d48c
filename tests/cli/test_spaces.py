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
        assert run(noun, "edit", made["id"], "--description", "Ice").out.startswith("Changed the description of the ")
        assert data(run("--json", noun))[0]["description"] == "Ice"
        consent = [] if noun == "teams" else ["--yes"]
        told = f"Deleted {made['id']}. `{noun} restore {made['id']}` brings it back.\n"
        assert run(noun, "delete", made["id"], *consent).out == told
        assert data(run("--json", noun)) == []
        assert [one["id"] for one in data(run("--json", noun, "--deleted"))] == [made["id"]]
        assert run(noun, "restore", made["id"]).out == f"Restored {made['id']}.\n"
        assert [one["id"] for one in data(run("--json", noun, "list", "--search", made["name"]))] == [made["id"]]
    assert run("teams", "move", team["id"], "none").status == 0
    assert data(run("--json", "teams"))[0]["session_id"] is None


def test_deleting_a_project_or_session_counts_its_contents_first(run: Type) -> None:
    run("projects", "add", "Lab")
    for name in ("Day 1", "Day 2"):
        run("sessions", "add", "Lab", name)
    run("teams", "add", "Night", "--session", "Day 1")
    run("contexts", "add", "Day 2", "Bills")
    run("call", "register", "name=ada")
    run("approve", "1", "--session", "Day 2")
    ran = run("projects", "delete", "Lab")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        "NOT_CONFIRMED: Deleting the project Lab also deletes 2 sessions, 1 team and 1 context and takes 1 agent out "
        "of its session. Nothing was changed. To do it, add --yes.\n"
    )
    refused = run("sessions", "delete", "Day 1").err
    assert refused.startswith("NOT_CONFIRMED: Deleting the session Day 1 also deletes 1 team. ")
    assert [one["name"] for one in data(run("--json", "projects"))] == ["Lab"]
    assert run("projects", "delete", "Lab", "--yes").status == 0
    assert data(run("--json", "projects")) == []
    run("projects", "add", "Empty")
    assert run("projects", "delete", "Empty").status == 0


def test_at_a_terminal_the_user_is_asked_and_a_list_that_is_cut_short_says_so(run: Type) -> None:
    for name in ("Lab", "p1", "p2"):
        run("projects", "add", name)
    run("sessions", "add", "Lab", "Day 1")
    assert run("projects", "--limit", "1").out.splitlines()[-1] == "… and 2 more"
    for answer, left in (("n\n", 3), ("\n", 3), ("y\n", 2)):
        run("projects", "delete", "Lab", given=answer, terminal=True)
        assert len(data(run("--json", "projects"))) == left
