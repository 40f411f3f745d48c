"""Four devices and twelve agents, by a clock that the test moves: none idles while tasks wait, none has two users."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator
from random import Random

import pytest

from tests import given
from tests.conftest import Admit, Admitted, Clock
from tests.services.tasks.leases.calls import do, sweep
from workbench.app import Workbench
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]

DEVICES, AGENTS, TASKS, SPREAD = 4, 12, 300, 23
LEASE_SECONDS, TICK_SECONDS = 30.0, 0.25


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Four devices; a lease of half a minute."""
    gpus = [{"name": f"gpu{n}", "devices": ["/dev/null"]} for n in range(DEVICES)]
    return settings.model_copy(
        update={"resources": {"gpus": gpus}, "lease_seconds": LEASE_SECONDS, "retry_base_seconds": 0.0}
    )


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time the test moves."""
    async with Workbench.open(migrated, clock=clock) as opened:
        yield opened


async def test_four_devices_are_busy_and_have_one_user_each_while_twelve_agents_share_them(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    random = Random(7)
    lengths = {}
    new = [{"title": "t", "persona_id": "implementer", "needs": {"gpu": 1}, "run": "true"} for _ in range(TASKS)]
    for task_id in (await workbench.call("create_tasks", tasks=new))["task_ids"]:
        lengths[task_id] = 1 + (SPREAD - 1) * random.random() ** 2
    idle = [await admit(f"agent{n}") for n in range(AGENTS)]
    ends: list[tuple[float, int, str, Admitted, bool]] = []
    began, now, busy, killed = clock.now, 0.0, 0.0, False
    while True:
        for agent in list(idle):
            if (task := await given.claim(workbench, agent)) is None:
                break
            idle.remove(agent)
            (device,) = task["attempts"][-1]["leased"]["devices"]
            assert device not in {one for _, _, one, _, _ in ends}, f"{device} has two users"
            dies = not killed and now > 100  # it is not heard of any more
            killed = killed or dies
            at = now + (LEASE_SECONDS + TICK_SECONDS if dies else lengths[task["id"]])
            heapq.heappush(ends, (at, task["id"], device, agent, dies))
        if not ends:
            break
        before, (now, task_id, _, agent, dies) = now, heapq.heappop(ends)
        busy += (len(ends) + (not dies) - sum(dead for *_, dead in ends)) * (now - before)
        clock.forward(now - before)
        if dies:
            await sweep(workbench)
            assert (await given.task_now(workbench, task_id))["status"] == "pending"
        else:
            await do(workbench, agent, "complete_task", task_id)
            idle.insert(0, agent)
    counts = (await workbench.call("count_tasks"))["counts"]
    assert counts == {"completed": TASKS}
    share = busy / (DEVICES * (clock.now - began) / 1e6)
    assert share >= 0.9, f"the devices were busy for {share:.1%} of the time"
