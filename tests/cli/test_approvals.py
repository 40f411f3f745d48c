"""The commands that decide approvals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests import given
from tests.cli.conftest import Type, data
from tests.conftest import Admit, Command, Ran, Served, git
from tests.services.processes.running import crowded
from workbench.state.settings import Settings

MERGED = """\
id  outcome
1   lab is integrated
    Tasks: none in this worktree.
    Gates: 1 passed.
    Checks: no conflicts with main; protected parts are unchanged.
"""
PLANNED = """
plan: zoo
budget: 30usd
tasks:
  - {name: feed, title: Feed, persona: implementer}
  - {name: clean, title: Clean, persona: implementer}
  - {name: open, title: Open, persona: implementer, after: [clean]}
"""
DEFAULTS = "worker, no persona, read and write, sees its own data, in no session"


def test_approve_decides_many_questions_and_shows_each_answer(run: Type) -> None:
    for name in ("Ada", "Bob", "Eve", "Joe"):
        run("call", "register", f"name={name}")
    ran = run("approve", "1", "2", "99")
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.splitlines()[1:] == [
        f"1   Ada is admitted: {DEFAULTS}",
        f"2   Bob is admitted: {DEFAULTS}",
        "99  APPROVAL_NOT_FOUND: There is no approval 99. `workbench approvals` lists them.",
    ]
    assert run("approve", "3", "4", "--id", "one").status == 2
    assert [d["ok"] for d in data(run("--json", "reject", "--all", "--reason", "Enough"))] == [True, True]
    assert run("reject", "--all").out == "Nothing needs your approval.\n"


def test_registrations_are_rejected_by_name_and_the_decided_ones_show_the_id_that_was_granted(run: Type) -> None:
    for name in ("Spam 1", "Oracle", "Spam 2"):
        run("call", "register", f"name={name}")
    assert run("reject", "1", "--named", "Spam*").status == 2
    assert len(data(run("--json", "reject", "--named", "Spam*"))) == 2
    assert "Oracle wants to be Oracle (no persona), in no session" in run("approvals").out
    run("approve", "Oracle", "--id", "seer")
    assert "Oracle, as seer" in run("approvals", "--all").out


@asynccontextmanager
async def approving(settings: Settings, command: Command, gate: str) -> AsyncIterator[tuple[Served, asyncio.Task[Ran]]]:
    """A project whose merges must pass a gate, and the command that approves one."""
    async with crowded(settings, integration_gates=(gate,)) as served:
        git("commit", "--allow-empty", "-qm", "Count", cwd=await given.worktree(served.workbench))
        await served.workbench.call("integrate_worktree", worktree_name="lab")
        yield served, asyncio.create_task(command("approve", "1"))


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("end", "ran"),
    [
        ("true", Ran(0, MERGED, "")),
        ("false", Ran(1, "", "GATES_FAILED: The gates failed on the merge with the current target.\n")),
    ],
)
async def test_an_approved_merge_is_waited_for(settings: Settings, command: Command, end: str, ran: Ran) -> None:
    gate = f'until test -e "$HOME/go"; do sleep 0.05; done; {end}'
    async with approving(settings, command, gate) as (served, approval):
        workbench = served.workbench
        home = settings.gates / "1" / "scratch"
        while (await workbench.call("list_approvals"))["approvals"] or not home.exists():
            await asyncio.sleep(0.02)
        (home / "go").touch()
        assert await approval == ran


@pytest.mark.long
@pytest.mark.anyio
async def test_an_approved_merge_stays_queued_when_the_server_stops(settings: Settings, command: Command) -> None:
    async with approving(settings, command, "sleep 600") as (served, approval):
        while (await served.workbench.call("list_approvals"))["approvals"]:
            await asyncio.sleep(0.02)
        await served.servers.stop()
        assert await approval == Ran(0, "id  outcome\n1   lab is queued\n", "")


THEIRS = """\
metadata: {id: theirs, name: Theirs}
mcpServers:
  files: {command: npx, args: [-y, server], env: {API_TOKEN: hunter2}}
settings: {toolPermission: never}
"""
NEEDS = (
    "Theirs needs trust: settings.toolPermission: tools that run without asking you: all; "
    'mcpServers.files: starts "npx" "-y" "server" with API_TOKEN=••••••'
)


def test_a_definitions_needs_are_refused_by_path_and_trusted_by_name_but_not_by_all(
    run: Type, repository: Path
) -> None:
    definition = repository / ".aiswarm" / "agents" / "theirs"
    definition.mkdir(parents=True)
    (definition / "agent.yaml").write_text(THEIRS)
    run("call", "agent_request_trust", "agentTarget=./agents/theirs")
    assert run("reject", "./agents/theirs", "--reason", "Not here").status == 0
    assert data(run("--json", "call", "agent_get_trust", "agentTarget=Theirs"))["refusal"] == "Not here"
    run("call", "agent_request_trust", "agentTarget=./agents/theirs")
    (asked,) = data(run("--json", "approvals"))
    assert NEEDS in run("approvals").out
    assert run("approve", "--all").out == "Nothing needs your approval.\n"
    assert run("approve", "Theirs").out.splitlines()[1:] == [
        f"{asked['id']}   Theirs is trusted with mcpServers.files, settings.toolPermission"
    ]
    assert "the definition Theirs" in run("approvals", "--all").out


@pytest.mark.anyio
async def test_a_part_of_a_planners_plan_is_approved_by_name(served: Served, command: Command, admit: Admit) -> None:
    pam = await admit("pam", role="planner")
    await served.workbench.dispatch(pam.caller, "create_plan", {"text": PLANNED})
    assert (
        "the plan zoo: 3 tasks. It may spend $30.00, more than $20.00. 3 for implementer. At"
        in (await command("approvals")).out
    )
    tree = (await command("proposed", "2")).out
    assert [line.split()[1] for line in tree.splitlines()[1:]] == ["feed", "clean", "open"]
    assert (await command("approve", "--all")).out == "Nothing needs your approval.\n"
    ran = await command(*("approve", "zoo", "--without", "clean", "--on", "feed", "Fish only.", "--budget", "10usd"))
    assert ran.out.splitlines()[1] == ("2   1 task may begin; left out: clean, open (needs or is part of one of these)")
    assert "zoo" in (await command("approvals", "--all")).out
    assert "Fish only." in (await command("messages", "--task", "1")).out
