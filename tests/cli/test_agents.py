"""The commands about agents."""

from __future__ import annotations

from tests.cli.conftest import Type, data


def admitted(run: Type, *names: str) -> None:
    for name in names:
        run("call", "register", f"name={name}")
    run("approve", "--all")


def test_agents_are_deleted_and_restored_with_their_grants(run: Type) -> None:
    admitted(run, "ada", "bob", "eve")
    run("grant", "ada", "bob", "eve", "--access", "team_level")
    ran = run("agents", "delete", "ada", "bob", "--reason", "Done")
    assert ran.out == "Deleted ada and bob. `agents restore ada bob` brings them back.\n"
    assert [one["agent_id"] for one in data(run("--json", "agents"))] == ["eve"]
    assert [one["agent_id"] for one in data(run("--json", "agents", "list", "--deleted"))] == ["ada", "bob"]
    assert "Done" in run("history", "ada").out
    assert run("agents", "restore", "ada", "bob").out == "Restored ada and bob.\n"
    assert {one["access_level"] for one in data(run("--json", "agents"))} == {"team_level"}
    assert run("agents", "delete", "nobody-here").err.startswith("AGENT_NOT_FOUND: ")


def test_several_agents_are_granted_the_same_at_once_all_or_none(run: Type) -> None:
    admitted(run, "ada", "bob")
    assert run("grant", "ada", "bob", "--access", "session_level").out == "Changed ada and bob.\n"
    assert {one["access_level"] for one in data(run("--json", "agents"))} == {"session_level"}
    assert run("grant", "ada", "eve", "--access", "self_only").err.startswith("AGENT_NOT_FOUND: ")
    assert {one["access_level"] for one in data(run("--json", "agents"))} == {"session_level"}
    assert data(run("--json", "agents", "grant", "ada", "--name", "Ada L."))["name"] == "Ada L."
    assert "Ada L." in run("agents", "show", "ada").out
