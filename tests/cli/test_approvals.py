"""The commands that decide approvals."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.cli.conftest import Type, data
from tests.conftest import Command, Ran, git
from workbench.app import Workbench
from workbench.settings import Settings
from workbench.shells.serve import Servers

DEFAULTS = "worker, no persona, read and write, sees its own data, in no session"


def test_many_are_decided_at_once_and_each_answer_is_shown(run: Type) -> None:
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


@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("end", "ran"),
    [
        ("true", Ran(0, "id  outcome\n1   lab is integrated\n", "")),
        ("false", Ran(1, "", "GATES_FAILED: The gates failed on the merge with the current target.\n")),
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


@pytest.mark.long
@pytest.mark.anyio
async def test_an_approved_merge_stays_queued_when_the_server_stops(settings: Settings, command: Command) -> None:
    gated = settings.model_copy(update={"integration_gates": ("sleep 600",)})
    async with Workbench.open(gated) as workbench, Servers(workbench) as servers:
        await servers.start(0)
        made = await workbench.call("create_worktree", name="lab")
        git("commit", "--allow-empty", "-qm", "Count", cwd=Path(made["path"]))
        await workbench.call("integrate_worktree", worktree_name="lab")
        approving = asyncio.create_task(command("approve", "1"))
        while (await workbench.call("list_approvals"))["approvals"]:
            await asyncio.sleep(0.02)
        await servers.stop()
        assert await approving == Ran(0, "id  outcome\n1   lab is queued\n", "")


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


def test_what_a_definition_needs_is_shown_and_trusted_by_name_but_not_with_all_the_rest(
    run: Type, repository: Path
) -> None:
    definition = repository / ".aiswarm" / "agents" / "theirs"
    definition.mkdir(parents=True)
    (definition / "agent.yaml").write_text(THEIRS)
    run("call", "agent_request_trust", "agentTarget=./agents/theirs")
    (asked,) = data(run("--json", "approvals"))
    assert NEEDS in run("approvals").out
    assert run("approve", "--all").out == "Nothing needs your approval.\n"
    assert run("approve", "Theirs").out.splitlines()[1:] == [
        f"{asked['id']}   Theirs is trusted with mcpServers.files, settings.toolPermission"
    ]
    assert "the definition Theirs" in run("approvals", "--all").out


def test_a_definition_that_is_refused_is_named_by_its_path(run: Type, repository: Path) -> None:
    definition = repository / ".aiswarm" / "agents" / "theirs"
    definition.mkdir(parents=True)
    (definition / "agent.yaml").write_text(THEIRS)
    run("call", "agent_request_trust", "agentTarget=./agents/theirs")
    assert run("reject", "./agents/theirs", "--reason", "Not here").status == 0
    assert data(run("--json", "call", "agent_get_trust", "agentTarget=Theirs"))["refusal"] == "Not here"
