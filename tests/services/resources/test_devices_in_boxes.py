"""The commands of an attempt, and its check, open the device that it holds and no other; a killed worker frees it."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.chance import SOAK, chance
from tests.conftest import Served
from tests.services.processes.running import process, serving, spawn
from tests.worker.working import done, output_of
from workbench.analytics.live import Live, refresh
from workbench.analytics.questions import SqlQuestion
from workbench.confinement import abilities
from workbench.state.settings import Settings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.long,
    pytest.mark.timeout(90),
    pytest.mark.skipif(os.geteuid() != 0 or not abilities().abi, reason="only root makes device files"),
]


BUSY = """
WITH gpus AS (SELECT device, epoch(begun_at) AS begun, epoch(ended_at) AS ended FROM leases WHERE name = 'gpu'),
     waited AS (SELECT min(begun) AS since, max(begun) AS until FROM gpus)
SELECT sum(least(ended, until) - begun) / (any_value(until) - any_value(since)) / count(DISTINCT device)
FROM gpus, waited
"""


@pytest.fixture
def devices(on_disk: Path) -> list[Path]:
    """Four device files that stand in for those of GPUs."""
    paths = [on_disk / f"device{number}" for number in range(4)]
    for path in paths:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    return paths


@asynccontextmanager
async def lending(settings: Settings, devices: list[Path], **more: Any) -> AsyncIterator[Served]:
    """A served project that lends devices, without a worktree."""
    gpus = [{"name": path.name, "devices": [str(path)]} for path in devices]
    async with serving(settings.model_copy(update={"resources": {"gpus": gpus, "cpu": 8}, **more})) as served:
        yield served


async def test_a_command_and_its_check_have_the_device_of_their_attempt_and_no_other(
    settings: Settings, repository: Path, devices: list[Path]
) -> None:
    own, other = devices = devices[:2]
    sees = f'test "$CUDA_VISIBLE_DEVICES" = device0 && echo x >> {own} && ! cat {other} && test $OMP_NUM_THREADS = 3'
    async with lending(settings, devices) as served:
        await served.workbench.call("create_worktree", name="lab")
        await spawn(served, assigned_worktree="lab")
        lab = {"target_worktree": "lab", "max_retries": 0}
        task = await done(served, sees, check=sees, needs={"gpu": 1, "cpu": 3}, **lab)
        assert task["evidence"] == "checked", task["attempts"]
        nothing = f'test -z "$CUDA_VISIBLE_DEVICES" && ! cat {own} && ! cat {other}'
        await done(served, nothing, check=nothing, **lab)
        both = f"cat {own} {other}; echo $CUDA_VISIBLE_DEVICES"
        task = await done(served, both, needs="gpu=2", **lab)
        assert (await output_of(served, task["id"]))[-1] == "device0,device1"


async def test_a_killed_worker_leaves_nothing_on_its_device_and_the_next_one_gets_it(
    settings: Settings, repository: Path, devices: list[Path]
) -> None:
    take = f"exec 9<> {devices[0]}; flock -n 9 || exit 1; echo begun; test $WORKBENCH_ATTEMPT = 2 || sleep 1000"
    async with lending(settings, devices[:1], max_retries=0) as served:
        victim = await spawn(served, name="victim")
        async with served.workbench.feed.subscribe("task.progressed") as events:
            first = await given.task(served.workbench, run=take, needs="gpu")
            await anext(events)
        await spawn(served, name="heir")
        second = await given.task(served.workbench, run="true", needs="gpu")
        assert (await given.task_now(served.workbench, second))["waits_for"] == "a GPU (0 of 1 free)"
        os.kill((await process(served, victim["agent_id"]))["pid"], signal.SIGKILL)
        for task_id in (first, second):
            task = await given.reached(served.workbench, task_id, "completed", "failed")
            assert task["status"] == "completed", task["error_message"]
        killed, again = (await given.task_now(served.workbench, first))["attempts"]
        assert killed["outcome"] == "released"
        assert (
            killed["leased"]
            == again["leased"]
            == {"devices": ["device0"], "amounts": {}, "alone": False, "machine": None}
        )
        (row,) = [row for row in (await served.workbench.call("list_resources"))["resources"] if row["device"]]
        assert row["holders"] == []


@pytest.mark.skipif(not SOAK, reason="it takes minutes: make soak")
@pytest.mark.timeout(1_800)
async def test_twelve_workers_share_four_devices_without_a_collision_and_keep_them_busy(
    settings: Settings, repository: Path, devices: list[Path]
) -> None:
    random = chance("lengths")
    lengths = [1 + 22 * random.random() ** 2 for _ in range(300)]
    foreign = " && ".join(
        f'{{ [ "$CUDA_VISIBLE_DEVICES" = {path.name} ] || ! (exec 8<> {path}); }}' for path in devices
    )
    take = f'exec 9<> {devices[0].parent}/"$CUDA_VISIBLE_DEVICES"; flock -n 9 && {foreign} && date +%s.%N'
    run = {"persona_id": "implementer", "needs": {"gpu": 1}, "max_retries": 0}
    new = [{"title": "t", "run": f"{take} && sleep {length} && date +%s.%N", **run} for length in lengths]
    async with lending(settings, devices) as served:
        call = served.workbench.call
        for number in range(12):
            await spawn(served, name=f"worker{number}")
        began = time.time()
        ids = (await call("create_tasks", tasks=new))["task_ids"]
        for task_id in ids:
            task = await given.reached(served.workbench, task_id, "completed", "failed")
            assert task["status"] == "completed", task["error_message"]
        took = time.time() - began
        print(f"commands ran for {sum(lengths) / took / len(devices):.1%} of the time of {len(devices)} devices")
        live = Live()
        ((busy,),) = live.run(await refresh(live, served.workbench.store), SqlQuestion(BUSY)).fetchall()
        print(f"a device was leased for {busy:.1%} of the time in which tasks waited for one")
        assert busy >= 0.9
