"""A server stops, or is killed while it stops, although a worktree holds git up; the next server goes on from there.

Run as a script this is the server.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import given
from tests.services.processes.running import serving, spawn
from workbench.services.worktrees import imports, kept_work, rescue
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(50)]  # shorter than git's time limit

DAMAGES = {
    "a FIFO that git reads": "mkfifo .gitignore",
    "a FIFO as HEAD": "G=$(git rev-parse --git-dir); rm $G/HEAD; mkfifo $G/HEAD",
}


async def serve(project: Path, damage: str, seconds: float) -> None:
    """Serve the project until a task has damaged its worktree, then stop."""
    vars(kept_work)["LOOK_SECONDS"] = seconds
    settings = Settings(project=project, terminate_grace_seconds=1.0)
    async with serving(settings) as served:
        place = await given.worktree(served.workbench)
        await spawn(served, assigned_worktree="lab")
        await given.task(served.workbench, run=f"{DAMAGES[damage]}; echo work > work.txt; sleep 600")
        await given.appeared(place / "work.txt")
        print("stopping", flush=True)
    print("stopped", flush=True)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_damaged_worktree_is_discarded_without_loss_after_a_killed_stop(
    settings: Settings, child: Any, monkeypatch: pytest.MonkeyPatch, damage: str, is_killed: bool
) -> None:
    for module in (kept_work, imports, rescue):
        monkeypatch.setattr(module, "LOOK_SECONDS", 1.0)
    server = child(__file__, settings.project, damage, 30.0 if is_killed else 0.5)
    assert server.stdout.readline() == "stopping\n"
    if is_killed:
        if damage == "a FIFO that git reads":
            given.wait_until(lambda: any("git" in child.name() for child in psutil.Process(server.pid).children(True)))
        server.kill()
    else:
        assert server.stdout.readline() == "stopped\n"
    server.wait()
    async with serving(settings) as served:
        (task,) = (await served.workbench.call("list_tasks"))["tasks"]
        assert (await given.reached(served.workbench, task["id"], "pending"))["error_message"] is None
        await served.workbench.call("discard_worktree", worktree_name="lab", force=True)
        (saved,) = settings.trash.glob("*/files/work.txt")  # where the server that stopped put it, or this one
        assert saved.read_text() == "work\n"


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
