"""A worker elsewhere that is killed in the middle of a task, and started again in its directory."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests import given
from tests.conftest import Served, git
from tests.elsewhere import FarWorker

pytestmark = [pytest.mark.anyio, pytest.mark.long]

WORK = """
git merge-base --is-ancestor wb/other/main HEAD || git merge -q --no-edit wb/other/main
echo $WORKBENCH_ATTEMPT > made
[ $WORKBENCH_ATTEMPT = 1 ] && sleep 600
exit 0
"""


async def test_a_task_that_a_killed_worker_elsewhere_held_is_done_once_it_is_started_again(
    served: Served, repository: Path, on_disk: Path
) -> None:
    workbench = served.workbench
    other = await given.worktree(workbench, "other")
    (other / "of_other").write_text("merged\n")
    git("add", ".", cwd=other)
    git("commit", "-q", "-m", "Of another worktree", cwd=other)
    await workbench.call("get_worktree_status", worktree_name="other")
    token = (await workbench.call("add_machine", name="gpu"))["token"]
    worker = FarWorker(on_disk / "far", served.info.url, token, "--persona", "implementer")
    worker.start()
    try:
        task_id = await given.task(workbench, run=WORK)
        await given.until(lambda: list(on_disk.glob("far/work/.aiswarm/worktrees/*/made")))
        await asyncio.to_thread(worker.end, signal.SIGKILL)
        worker.start()
        task = await given.reached(workbench, task_id, "completed", "failed")
    finally:
        await asyncio.to_thread(worker.end)
        print(worker.log)
    assert [attempt["outcome"] for attempt in task["attempts"]] == ["released", "completed"]
    assert task["attempts"][0]["kept"] is not None  # what it had made is not lost
    branch = f"wb/{task['attempts'][-1]['worktree']}/main"
    assert git("show", f"{branch}:made", cwd=repository) == "2"
    assert git("show", f"{branch}:of_other", cwd=repository) == "merged"
