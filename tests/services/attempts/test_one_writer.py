"""One attempt at a time in a worktree, as real processes: the next begins when nothing of the one before is alive."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.conftest import Served, ended, git
from tests.services.processes.running import serving, spawn
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]

BEATS = "while :; do echo $WORKBENCH_ATTEMPT >> beats.txt; sleep 0.02; done"
"""What writes on and on, beside a child that has left its session."""
FIRST_ONLY = (
    f'[ $WORKBENCH_ATTEMPT = 1 ] || {{ ls > seen.txt; exit 0; }}; setsid sh -c "{BEATS}" & echo $$ > pid; {BEATS}'
)


@pytest.fixture
async def hasty(settings: Settings) -> AsyncIterator[Served]:
    """A project in which leases are short, with the worktree `lab`."""
    times = {"lease_seconds": 1.5, "heartbeat_seconds": 0.3, "terminate_grace_seconds": 0.4, "retry_base_seconds": 0.0}
    async with serving(settings.model_copy(update=times)) as served:
        await given.worktree(served.workbench)
        yield served


def place(served: Served) -> Path:
    return served.workbench.settings.worktrees / "lab"


async def begun(served: Served) -> tuple[int, int, int]:
    """The supervisor of an attempt that writes, its command, and its task."""
    first = await spawn(served, assigned_worktree="lab", name="first")
    task_id = await given.task(served.workbench, run=FIRST_ONLY, target_worktree="lab")
    command = int(await given.written(place(served) / "pid"))
    await given.appeared(place(served) / "beats.txt")
    return first["pid"], command, task_id


async def is_completed_apart(served: Served, task_id: int, *pids: int) -> list[str]:
    """The second attempt's commit has nothing of the first one's, which is kept; how the attempts ended."""
    task, repository = await given.reached(served.workbench, task_id, "completed", "failed"), place(served).parents[2]
    await ended(*pids)
    assert lines(repository, task["attempts"][0]["kept"]["ref"]) == {"1"}
    assert git("diff", "--name-only", "main", "wb/lab/main", cwd=repository).split() == ["seen.txt"]
    assert git("show", "wb/lab/main:seen.txt", cwd=repository).split() == ["README.md", "seen.txt"]
    return [attempt["outcome"] for attempt in task["attempts"]]


def lines(repository: Path, commit: str) -> set[str]:
    return set(git("show", f"{commit}:beats.txt", cwd=repository).splitlines())


async def test_files_of_a_killed_supervisor_are_kept_out_of_the_next_attempts_commit(
    hasty: Served,
) -> None:
    supervisor, command, task_id = await begun(hasty)
    os.kill(supervisor, signal.SIGKILL)
    await spawn(hasty, assigned_worktree="lab", name="second")
    assert (await is_completed_apart(hasty, task_id, command))[-1] == "completed"


async def test_no_attempt_begins_in_a_worktree_whose_stopped_supervisor_still_runs(hasty: Served) -> None:
    supervisor, command, task_id = await begun(hasty)
    os.kill(supervisor, signal.SIGSTOP)
    await spawn(hasty, assigned_worktree="lab", name="second")
    async with hasty.workbench.feed.subscribe("task.waiting") as waiting:
        waits_for = (await anext(waiting)).data["waits_for"]
    assert waits_for == (
        "The worktree lab is occupied: attempt 1 at task 1 by first has ended, but what it started "
        f"(process {supervisor}) has not."
    )
    assert await is_completed_apart(hasty, task_id, command, supervisor) == ["expired", "completed"]


async def test_two_workers_in_one_worktree_make_their_attempts_one_after_the_other(
    hasty: Served, repository: Path
) -> None:
    run = "ls > $WORKBENCH_TASK_ID.txt; sleep 0.3; echo >> $WORKBENCH_TASK_ID.txt"
    tasks = [await given.task(hasty.workbench, run=run, target_worktree="lab") for _ in range(4)]
    for name in ("first", "second"):
        await spawn(hasty, assigned_worktree="lab", name=name)
    for task_id in tasks:
        task = await given.reached(hasty.workbench, task_id, "completed", "failed")
        (artifact,) = (a for a in task["artifacts"] if a.startswith("commit:"))
        changed = git("diff", "--name-only", f"{artifact[7:]}^", artifact[7:], cwd=repository)
        assert (task["status"], changed) == ("completed", f"{task_id}.txt")


async def test_the_next_server_keeps_the_work_of_an_attempt_whose_supervisor_was_killed(
    settings: Settings, repository: Path
) -> None:
    async with serving(settings) as served:
        await given.worktree(served.workbench)
        supervisor, command, task_id = await begun(served)
        served.servers.end_workers = False
    os.kill(supervisor, signal.SIGKILL)
    async with serving(settings) as served:

        async def kept() -> Any:
            return (await given.task_now(served.workbench, task_id))["attempts"][0]["kept"]

        found = await given.until(kept)
        await ended(command)
        assert lines(repository, found["ref"]) == {"1"}
        assert not (place(served) / "beats.txt").exists()
