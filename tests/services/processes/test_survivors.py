"""Processes that cannot be ended: nothing else waits for them or fails with them."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, ended
from tests.services.processes.running import process, serving, spawn
from tests.services.worktrees.lab import finished
from tests.unkillable import unkillable
from workbench.errors import Unavailable
from workbench.services.processes import termination
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


@pytest.fixture(autouse=True)
def _killed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up soon on processes that cannot be ended."""
    monkeypatch.setattr(termination, "KILL_SECONDS", 1.5)
    monkeypatch.setattr(termination, "RETRY_KILL_SECONDS", 0.1)


async def command_of(served: Served, worktree: str) -> int:
    """Have the agent of a new worktree run a command that does not end; the pid of the command."""
    run = "echo $$ > pid.part; mv pid.part pid; exec sleep 600"
    await given.task(served.workbench, "Wait", run=run, target_worktree=worktree)
    return int(await given.written(served.workbench.settings.worktrees / worktree / "pid"))


async def survives(served: Served, agent_id: str, pid: int) -> dict[str, Any]:
    """The process of an agent, once it is noted that `pid` cannot be ended."""
    while (details := await process(served, agent_id))["reason"] is None:
        await asyncio.sleep(0.02)
    assert (details["state"], details["ended_at"]) == ("running", None)
    assert f"SIGKILL did not end {pid}." in details["reason"]
    return details


async def reaches(served: Served, agent_id: str, state: str) -> dict[str, Any]:
    """The process of an agent, once it is in a state."""
    while (details := await process(served, agent_id))["state"] != state:
        await asyncio.sleep(0.02)
    return details


async def is_over(served: Served, agent_id: str) -> dict[str, Any]:
    """The process of an agent, once a survivor has ended; it is tried again until then."""
    while (details := await process(served, agent_id))["state"] != "ended":
        await termination.end_survivors(served.workbench._ctx)
    return details


async def test_while_a_process_cannot_be_ended_the_next_agent_gets_its_place(settings: Settings) -> None:
    async with serving(settings.model_copy(update={"max_agents_running": 1})) as served:
        walt = await spawn(served, name="walt", new_worktree=True, assigned_worktree="lab")
        assert (await spawn(served, name="wilma"))["state"] == "queued"
        command = await command_of(served, "lab")
        with unkillable(command):
            os.kill(walt["pid"], signal.SIGKILL)
            found = await survives(served, "walt", command)
            assert [child["pid"] for child in found["children"]] == [command]
            await reaches(served, "wilma", "running")
        found = await reaches(served, "walt", "ended")
        assert (found["exit_code"], f"did not end {command}" in found["reason"]) == (-signal.SIGKILL, True)
        kinds = await given.kinds(served.workbench, "agent.*")
        assert (kinds.count("agent.survived"), kinds.count("agent.exited")) == (1, 1)


async def test_an_unkillable_process_fails_neither_the_stop_nor_the_next_start(served: Served) -> None:
    await spawn(served, name="walt", new_worktree=True, assigned_worktree="lab")
    wilma = await spawn(served, name="wilma")
    command = await command_of(served, "lab")
    with unkillable(command):
        await served.servers.stop()
        await ended(wilma["pid"])
        assert (await process(served, "wilma"))["state"] == "ended"
        await survives(served, "walt", command)
        await served.servers.start(0)
        await survives(served, "walt", command)
        await served.servers.stop()
    await served.servers.start(0)
    await is_over(served, "walt")


async def test_a_process_that_cannot_be_ended_is_still_known_after_a_restart(settings: Settings) -> None:
    """Its supervisor has ended, and it has a session of its own: only what it inherited tells whose it is."""
    with ExitStack() as held:
        async with serving(settings) as served:
            walt = await spawn(served, name="walt", new_worktree=True, assigned_worktree="lab")
            command = await command_of(served, "lab")
            held.enter_context(unkillable(command))
            await served.servers.stop()
            await ended(walt["pid"])
        async with serving(settings) as served:
            for _ in range(3):
                await termination.end_survivors(served.workbench._ctx)
                await survives(served, "walt", command)
            held.close()
            await is_over(served, "walt")
            await ended(command)


async def test_a_merge_succeeds_although_an_agent_there_cannot_be_ended(served: Served, repository: Path) -> None:
    walt = await spawn(served, name="walt", new_worktree=True, assigned_worktree="lab")
    task = await given.task(served.workbench, "Make it", run="touch new.txt", target_worktree="lab")
    await given.reached(served.workbench, task, "completed")
    question = await served.workbench.call("integrate_worktree", worktree_name="lab")
    with unkillable(walt["pid"]):
        await served.workbench.call("approve", approval_id=question["approval_id"])
        approval = await finished(served.workbench, question["approval_id"])
        assert (approval["status"], approval["outcome"]["state"]) == ("approved", "integrated")
        assert (repository / "new.txt").exists()
        await survives(served, "walt", walt["pid"])
        await given.until(lambda: not (repository / ".aiswarm" / "worktrees" / "lab").exists())
    assert "the worktree was integrated" in (await is_over(served, "walt"))["reason"]


async def test_terminating_an_agent_that_survives_is_an_error_and_revoking_it_is_not(served: Served) -> None:
    walt = await spawn(served, name="walt")
    with unkillable(walt["pid"]):
        for _ in range(2):
            with pytest.raises(Unavailable, match=f"PROCESS_SURVIVED: SIGKILL did not end {walt['pid']}"):
                await served.workbench.call("terminate_agent", agent_id="walt", reason="Enough.")
        found = await survives(served, "walt", walt["pid"])
        assert found["reason"].startswith("Enough. SIGKILL did not end")
        revoked = await served.workbench.call("revoke_agent", agent_id="walt")
        assert revoked["registration_status"] == "revoked"
    await is_over(served, "walt")
