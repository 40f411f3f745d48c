"""The commands about who is admitted, and as what."""

from __future__ import annotations

from tests.cli.conftest import Type, data


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
