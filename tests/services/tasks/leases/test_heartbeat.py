"""Heartbeats renew leases, and wait for work."""

from __future__ import annotations

import asyncio

import pytest

from tests import given
from tests.conftest import Admitted, Clock, followed
from tests.services.tasks.leases.calls import beat, do, enter, sweep
from workbench.app import Workbench
from workbench.errors import Refused
from workbench.model import SECOND, iso
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def test_a_heartbeat_renews_every_lease_by_its_own_length(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    tasks = [await given.task(workbench), await given.task(workbench, lease_seconds=30)]
    for task in tasks:
        await given.claim(workbench, ada, task)
    for _ in range(10):
        clock.forward(29)
        assert (await beat(workbench, ada))["lease_expires_at"] == iso(clock.now + 30 * SECOND)
        assert await sweep(workbench) == 0
    assert [(await given.task_now(workbench, t))["lease_expires_at"] for t in tasks] == [
        *(iso(clock.now + 120 * SECOND), iso(clock.now + 30 * SECOND)),
    ]
    (agent,) = (await workbench.call("list_agents"))["agents"]
    assert agent["last_heartbeat"] == iso(clock.now)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("news", ["created", "unblocked", "released", "rested"])
async def test_a_waiting_heartbeat_returns_as_soon_as_work_appears(
    workbench: Workbench, ada: Admitted, bob: Admitted, clock: Clock, news: str
) -> None:
    task = await given.task(workbench)
    await given.claim(workbench, bob)
    waits = await given.task(workbench, dependencies=[task])
    if news == "rested":
        await do(workbench, bob, "fail_task", task)
    waiting = asyncio.create_task(beat(workbench, ada, wait_seconds=30))
    await followed(workbench)
    await given.task(workbench, "not for ada", "tester")
    match news:
        case "created":
            task = await given.task(workbench)
        case "unblocked":
            await do(workbench, bob, "complete_task", task)
            task = waits
        case "released":
            await do(workbench, bob, "release_task", task)
        case "rested":
            clock.forward(13)
    assert [t["id"] for t in (await waiting)["available"]] == [task]


@pytest.mark.timeout(20)
async def test_more_tasks_at_once_than_a_subscriber_may_lag_end_no_wait_for_work(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"feed_queue": 10})) as workbench:
        ada = await enter(workbench, "ada")
        waiting = asyncio.create_task(beat(workbench, ada, wait_seconds=15))
        await followed(workbench)
        others = [{"title": f"{number}", "persona_id": "tester"} for number in range(100)]
        await workbench.call("create_tasks", tasks=others)
        await asyncio.wait({waiting}, timeout=0.5)
        assert not waiting.done()
        task = await given.task(workbench)
        assert [t["id"] for t in (await waiting)["available"]] == [task]


async def test_a_waiting_heartbeat_times_out_and_does_not_wait_while_a_task_is_held(
    workbench: Workbench, ada: Admitted
) -> None:
    found = await beat(workbench, ada, wait_seconds=0.05)
    assert found == {"holding": [], "available": [], "lease_expires_at": None, "finishing": [], "messages": []}
    task = await given.task(workbench)
    await given.claim(workbench, ada)
    assert [t["id"] for t in (await beat(workbench, ada, wait_seconds=30))["holding"]] == [task]


@pytest.mark.timeout(20)
async def test_a_heartbeat_waits_no_longer_than_the_setting_allows(settings: Settings) -> None:
    async with Workbench.open(settings.model_copy(update={"wait_limit_seconds": 0.05})) as workbench:
        ada = await enter(workbench, "ada")
        assert (await beat(workbench, ada, wait_seconds=3_600))["available"] == []


async def test_a_plain_heartbeat_renews_every_lease(workbench: Workbench, ada: Admitted, clock: Clock) -> None:
    assert await workbench.dispatch(ada.caller, "heartbeat", {}) == {"holding": [], "lease_expires_at": None}
    tasks = [await given.task(workbench, lease_seconds=seconds) for seconds in (90, 30)]
    for task in tasks:
        await given.claim(workbench, ada, task)
    clock.forward(20)
    beat = await workbench.dispatch(ada.caller, "heartbeat", {"agent_id": "ada"})
    assert beat == {"holding": tasks, "lease_expires_at": iso(clock.now + 30 * SECOND)}
    assert (await given.task_now(workbench, tasks[0]))["lease_expires_at"] == iso(clock.now + 90 * SECOND)
    (agent,) = (await workbench.call("list_agents"))["agents"]
    assert (agent["last_heartbeat"], agent["registration_status"]) == (iso(clock.now), "active")
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "heartbeat", {"agent_id": "bob"})
