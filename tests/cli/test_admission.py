"""The commands about admission, rules and tools."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.cli.conftest import Type, data
from workbench.app import Workbench
from workbench.state.settings import Settings


def test_an_agent_is_admitted_with_every_choice_and_changed_later(run: Type) -> None:
    run("projects", "add", "Lab")
    run("sessions", "add", "Lab", "Day 1")
    run("sessions", "add", "Lab", "Day 2")
    run("teams", "add", "Night", "--session", "Day 1")
    run("call", "register", "name=Ada")
    assert run("approvals").out.splitlines()[1].split("  ")[2] == "Ada wants to be Ada (no persona), in no session"
    choices = ("--id", "ada", "--team", "Night", "--persona", "reviewer", "--tool", "read")
    answer = run("approve", "1", *choices, "--access", "team_level", "--expires", "2h").out
    granted = "worker, persona reviewer, read only, sees its team's data, in Lab / Day 1, team Night, until 20"
    assert f"ada is admitted: {granted}" in answer
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
    out = run("token", "first").out
    assert out.startswith("wba_")
    assert run("token", "first").out != out


def test_more_agents_than_a_page_are_counted_and_admitted_at_once(run: Type, repository: Path) -> None:
    async def register() -> None:
        async with Workbench.open(Settings(project=repository)) as workbench:
            for number in range(205):
                await workbench.call("register", name=f"agent-{number}")

    asyncio.run(register())
    assert ["waiting", "for", "approval", "205"] in [line.split() for line in run("status").out.splitlines()]
    assert len(data(run("--json", "approvals"))) == 205
    assert len(data(run("--json", "approve", "--all", "--kind", "registration"))) == 205
    assert ["agents", "assigned", "205"] in [line.split() for line in run("status").out.splitlines()]


def test_rules_admit_and_are_listed_and_removed(run: Type) -> None:
    assert run("rules").out == "There are no rules: you admit every agent yourself.\n"
    run("rules", "add", "night", "worker-*", "--tool", "read", "--expires", "8h")
    words = run("rules", "list").out.splitlines()[1].split()
    assert words == [
        "night",
        "worker-*",
        "you,",
        "on",
        "this",
        "machine",
        "tool",
        "read,",
        "expires_in_seconds",
        "28800",
    ]
    assert run("rules", "remove", "night").out == "Removed rule night.\n"
    assert run("rules", "remove", "night").err.startswith("RULE_NOT_FOUND: ")
    assert run("allowlist").out == "The allowlist is empty: every agent may act.\n"
    assert run("allowlist", "add", "ada").out == "Added ada. From now on only the agents on the allowlist may act.\n"
    assert run("allowlist", "add", "bob").out == "Added bob.\n"
    assert run("allowlist", "remove", "bob").out == "Removed bob.\n"
    assert run("allowlist").out.splitlines()[1].split()[0] == "ada"
    assert run("allowlist", "remove", "ada").out == "Removed ada. The allowlist is empty: every agent may act.\n"
    assert data(run("--json", "allowlist"))["ids"] == []


def test_tools_are_switched_and_their_rights_changed(run: Type) -> None:
    assert [one["id"] for one in data(run("--json", "agent-tools"))] == ["read", "register", "write"]
    assert run("agent-tools", "disable", "register").out == "register is switched off.\n"
    assert [line.split()[1] for line in run("agent-tools", "list").out.splitlines()[1:]] == ["on", "off", "on"]
    assert run("agent-tools", "enable", "register").out == "register is switched on.\n"
    before = next(one for one in data(run("--json", "agent-tools")) if one["id"] == "read")["permissions"]
    edited = run("agent-tools", "edit", "read", "--read", "contexts,agents").out
    assert edited == "read reads contexts and agents and writes nothing.\n"
    assert data(run("--json", "agent-tools", "edit", "read", "--description", "Look"))["description"] == "Look"
    after = next(one for one in data(run("--json", "agent-tools")) if one["id"] == "read")["permissions"]
    assert after == {"read": ["contexts", "agents"], "write": before["write"]}
    assert run("agent-tools", "edit", "read", "--read", "secrets").err.startswith("INVALID_ARGUMENTS: ")
    assert run("agent-tools", "disable", "sudo").err.startswith("TOOL_NOT_FOUND: ")
