"""Agents that are started again."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Admit, Served, ended
from tests.services.processes.running import over, process, spawn
from tests.worker.working import done, output_of
from workbench.errors import Conflict, Refused

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]


def content(path: Path) -> bytes:
    """The content of a file, if it is one and still exists."""
    with suppress(FileNotFoundError, IsADirectoryError):
        return path.read_bytes()
    return b""


async def test_a_worker_is_started_again_with_the_same_identity(served: Served, lab: Path) -> None:
    agent = await spawn(
        served, name="walt", assigned_worktree="lab", environment={"KEY": "s3cret"}, limits={"wall_seconds": 60}
    )
    first = await given.task(
        served.workbench, run="[ $WORKBENCH_ATTEMPT = 2 ] || { echo $$ > pid; sleep 600; }; echo key of ${#KEY}"
    )
    command = int(await given.written(lab / "pid"))
    again = await served.workbench.call("restart_agent", agent_id="walt")
    assert (again["agent_id"], again["state"], again["worktree"]) == ("walt", "running", "lab")
    await ended(agent["pid"], command)
    task = await given.reached(served.workbench, first, "completed")
    assert [(a["agent_id"], a["outcome"]) for a in task["attempts"]] == [("walt", "released"), ("walt", "completed")]
    assert (await output_of(served, first))[-1] == "key of 6"
    assert (await process(served, "walt"))["limits"]["wall_seconds"] == 60
    os.kill(again["pid"], signal.SIGKILL)
    await over(served, "walt")
    third = await served.workbench.call("restart_agent", agent_id="walt")
    await done(served)
    assert len({agent["pid"], again["pid"], third["pid"]}) == 3
    assert len(await given.kinds(served.workbench, "agent.restarted")) == 2
    (kept,) = [path for path in served.workbench.settings.home.rglob("*") if b"s3cret" in content(path)]
    assert (kept.parent.name, stat.S_IMODE(kept.stat().st_mode)) == ("environments", 0o600)


async def test_an_agent_is_started_again_only_by_its_spawner_and_not_when_it_was_rejected(
    served: Served, admit: Admit
) -> None:
    paula, pete = await admit("paula", "planner"), await admit("pete", "planner")
    agent = await spawn(served, paula)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await served.workbench.dispatch(pete.caller, "restart_agent", {"agent_id": agent["agent_id"]})
    again = await served.workbench.dispatch(paula.caller, "restart_agent", {"agent_id": agent["agent_id"]})
    assert (again["status"], again["state"]) == ("pending", "running")
    await served.workbench.call("reject", approval_id=agent["approval_id"])
    await over(served, agent["agent_id"])
    with pytest.raises(Conflict, match="WRONG_STATE"):
        await served.workbench.dispatch(paula.caller, "restart_agent", {"agent_id": agent["agent_id"]})
    await given.refuses("PROCESS_NOT_FOUND", served.workbench.call("restart_agent", agent_id="paula"))


async def test_without_its_environment_or_its_worktree_nothing_is_started_again(served: Served, lab: Path) -> None:
    await spawn(served, name="walt", assigned_worktree="lab", environment={"KEY": "x"})
    await spawn(served, name="wanda", environment={"KEY": "y"})
    await served.workbench.call("revoke_agent", agent_id="wanda")  # which forgets her environment
    (kept,) = (served.workbench.settings.home / "environments").iterdir()
    kept.unlink()
    await given.refuses("ENVIRONMENT_LOST", served.workbench.call("restart_agent", agent_id="walt"))
    assert (await process(served, "walt"))["running"]
    await spawn(served, name="wilma", assigned_worktree="lab")
    await served.workbench.call("discard_worktree", worktree_name="lab")
    await given.refuses("WORKTREE_NOT_FOUND", served.workbench.call("restart_agent", agent_id="wilma"))
