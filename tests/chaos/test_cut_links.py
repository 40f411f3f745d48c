"""The link between workers elsewhere and their server is cut and healed: every task is completed once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests import given
from tests.chance import SOAK, chance
from tests.conftest import Served, git
from tests.cutting_link import CuttingLink
from tests.elsewhere import FarWorker

pytestmark = [pytest.mark.anyio, pytest.mark.chaos]

ROUNDS = 50 * SOAK or 3
LEASE_SECONDS = 8.0
BYTES = 1_500_000
"""Of what a task makes, and of what it finds new: bundles of several pieces."""
WORK = f"""
echo $WORKBENCH_ATTEMPT > made-$WORKBENCH_TASK_ID.txt
head -c {BYTES} /dev/urandom > big
sleep 0.3
"""
MOMENTS = ("claim", "take", "work", "send", "send")
"""When the link is cut."""


@pytest.fixture
async def link(served: Served) -> AsyncIterator[CuttingLink]:
    async with CuttingLink(int(served.info.url.rpartition(":")[2])) as link:
        yield link


@pytest.mark.timeout(1_800 if SOAK else 300)
async def test_every_task_is_completed_once_however_often_the_link_is_cut(
    served: Served, repository: Path, on_disk: Path, link: CuttingLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"lease_seconds": LEASE_SECONDS, "heartbeat_seconds": 0.3, "retry_base_seconds": 0}.items():
        monkeypatch.setitem(served.workbench.settings.__dict__, name, value)
    token = (await served.workbench.call("add_machine", name="gpu"))["token"]
    async with AsyncExitStack() as stack:
        for number in (1, 2):
            worker = FarWorker(on_disk / f"far-{number}", link.url, token, "--persona", "implementer")
            worker.start()
            stack.callback(lambda one=worker: print(one.log))
            stack.callback(worker.end)
        random, tasks = chance(), []
        moments = cycle(random.sample(MOMENTS, len(MOMENTS)))
        for number, moment in zip(range(ROUNDS), moments, strict=False):
            is_long = number % 10 == 9
            tasks.append(await round_of(served, repository, link, random, moment, is_long=is_long))
            attempts = (await given.task_now(served.workbench, tasks[-1]))["attempts"]
            ends = [(attempt["outcome"], attempt["error_message"]) for attempt in attempts]
            assert is_long or len(ends) == 1, f"a second attempt at task {tasks[-1]}: {ends}"
        for task_id in tasks:
            await check(served, repository, task_id)


async def round_of(
    served: Served, repository: Path, link: CuttingLink, random: Random, moment: str, *, is_long: bool
) -> int:
    """Have a task done while the link is cut; the task."""
    silently = random.random() < 0.5
    if moment == "take":
        (repository / "new").write_bytes(random.randbytes(BYTES))
        git("add", "new", cwd=repository)
        git("commit", "-q", "-m", "More to take", cwd=repository)
        link.cut_after(random.randrange(BYTES), to_server=False, silently=silently)
    task_id = await given.task(served.workbench, run=WORK, max_retries=5)
    if moment in ("work", "send"):
        await given.reached(served.workbench, task_id, "in_progress")
    if moment == "send":
        link.cut_after(random.randrange(BYTES), to_server=True, silently=silently)
    if moment in ("take", "send"):
        await link.until_cut(10)
    else:
        await asyncio.sleep(random.random() * 0.5)
        link.cut(silently=silently)
    seconds = LEASE_SECONDS + 2 if is_long else random.random() * 3
    print(f"{moment}: cut {'silently ' if silently else ''}for {seconds:.1f} s", flush=True)
    await asyncio.sleep(seconds)
    link.heal()
    task = await given.reached(served.workbench, task_id, "completed", "failed")
    assert task["status"] == "completed", task["attempts"]
    return task_id


async def check(served: Served, repository: Path, task_id: int) -> None:
    """One attempt has completed it, whose work alone is on a branch, once."""
    task: dict[str, Any] = await given.task_now(served.workbench, task_id)
    (done,) = [attempt for attempt in task["attempts"] if attempt["outcome"] == "completed"]
    (artifact,) = [one for one in task["artifacts"] if one.startswith("commit:")]
    commit, branch = artifact.removeprefix("commit:"), f"wb/{done['worktree']}/main"
    assert git("show", f"{commit}:made-{task_id}.txt", cwd=repository) == str(done["attempt"])
    makers = git("log", "--format=%H", "--all", "--", f"made-{task_id}.txt", cwd=repository).split()
    on_branches = git("log", "--format=%H", "--branches", "--", f"made-{task_id}.txt", cwd=repository).split()
    assert on_branches == [commit], (makers, done)
    git("merge-base", "--is-ancestor", commit, branch, cwd=repository)
