"""Leases end at their time, even if the clock is set, and their holder may do nothing more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted, Clock
from tests.services.tasks.leases.calls import HOLDING, do, enter, kinds, sweep
from workbench.app import Workbench
from workbench.errors import Conflict, NotFound
from workbench.model import SECOND, iso
from workbench.shells.serve import Servers
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def test_a_lease_ends_at_its_time_and_not_before_and_too_often_fails_the_task(
    workbench: Workbench, ada: Admitted, bob: Admitted, clock: Clock
) -> None:
    task = await given.task(workbench, max_retries=1)
    await given.claim(workbench, ada)
    clock.forward(119.999)
    assert await sweep(workbench) == 0
    assert await given.claim(workbench, bob) is None
    clock.forward(0.001)
    await sweep(workbench)
    after = await given.task_now(workbench, task)
    assert (after["status"], after["assigned_agent_id"], after["retry_count"]) == ("pending", None, 1)
    assert after["lease_expires_at"] is None
    (attempt,) = after["attempts"]
    assert (attempt["outcome"], attempt["error_message"]) == ("expired", "the lease ran out")
    assert attempt["ended_at"] == iso(clock.now)
    assert (await kinds(workbench))[-1] == "task.expired"
    for seconds in (13, 121):
        clock.forward(seconds)
        await sweep(workbench)
        await given.claim(workbench, ada)
    found = await given.task_now(workbench, task)
    assert (found["status"], found["error_message"]) == ("failed", "the lease ran out")
    assert [a["outcome"] for a in found["attempts"]] == ["expired", "expired"]
    assert (await kinds(workbench))[-1] == "task.failed"


@pytest.mark.timeout(20)
async def test_an_open_project_ends_leases_and_pauses_without_a_call(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    await given.task(workbench)
    await given.claim(workbench, ada)
    async with workbench.feed.subscribe("task.expired", "task.retry_ready") as events:
        clock.forward(121)
        assert (await anext(events)).kind == "task.expired"
        clock.forward(13)
        assert (await anext(events)).kind == "task.retry_ready"
    assert (await given.claim(workbench, ada))["attempt"] == 2


@pytest.mark.timeout(20)
@pytest.mark.parametrize("step", [3_600, 121, -3_600])
async def test_setting_the_clock_ends_and_lengthens_no_lease(settings: Settings, step: int) -> None:
    wall, steady = Clock(), Clock()
    async with (
        Workbench.open(settings, clock=wall, steady=steady) as workbench,
        Workbench.open(settings, clock=wall, steady=steady) as other,
    ):
        ada, task, resting = await enter(workbench, "ada"), await given.task(workbench), await given.task(workbench)
        await do(workbench, ada, "fail_task", (await given.claim(workbench, ada, resting))["id"])
        await given.claim(workbench, ada, task)
        async with workbench.feed.subscribe("task.*") as events:
            wall.forward(step)
            assert (await anext(events)).subject == f"task:{resting}", "a pause may end early"
            while {workbench.leases._ahead, other.leases._ahead} != {wall.now - steady.now}:
                await asyncio.sleep(0.01)
            assert (await given.task_now(workbench, task))["lease_expires_at"] == iso(wall.now + 120 * SECOND)
            for clock in (wall, steady):
                clock.forward(121)
            assert [((event := await anext(events)).kind, event.subject)] == [("task.expired", f"task:{task}")]
    assert step > 0 or wall.now < steady.now


@pytest.mark.timeout(20)
async def test_a_suspended_server_ends_no_lease(settings: Settings) -> None:
    wall, steady = Clock(), Clock()
    async with Workbench.open(settings, clock=wall, steady=steady) as workbench, Servers(workbench) as servers:
        ada, task = await enter(workbench, "ada"), await given.task(workbench, lease_seconds=10)
        await given.claim(workbench, ada)
        await servers.start(0)
        while workbench.leases._last != steady.now:
            await asyncio.sleep(0.01)
        for clock in (wall, steady):
            clock.forward(11)
        while (found := await given.task_now(workbench, task))["lease_expires_at"] != iso(wall.now + 10 * SECOND):
            assert found["status"] == "claimed"
            await asyncio.sleep(0.01)
        async with workbench.feed.subscribe("task.expired") as events:
            for _ in range(3):
                for clock in (wall, steady):
                    clock.forward(4)
                while workbench.leases._last != steady.now:
                    await asyncio.sleep(0.01)
            assert (await anext(events)).subject == f"task:{task}"


@pytest.mark.timeout(20)
async def test_a_drifting_clock_does_not_count_as_set(settings: Settings) -> None:
    wall, steady = Clock(), Clock()
    async with Workbench.open(settings, clock=wall, steady=steady) as workbench:
        ada, task = await enter(workbench, "ada"), await given.task(workbench)
        until = (await given.claim(workbench, ada))["lease_expires_at"]
        for _ in range(60):
            wall.forward(2)
            steady.forward(1)
            await workbench.leases.end_due(workbench._ctx)
            assert (await given.task_now(workbench, task))["lease_expires_at"] in (until, None)
        assert (await given.task_now(workbench, task))["retry_count"] == 1


async def test_leases_that_end_together_are_retried_at_times_of_their_own(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    tasks = [await given.task(workbench) for _ in range(8)]
    for number, task in enumerate(tasks):
        await given.claim(workbench, await admit(f"agent-{number}"), task_id=task)
    clock.forward(121)
    drawn = iter(number / 8 for number in range(8))
    await workbench.leases.end_due(workbench._ctx._replace(random=lambda: next(drawn)))
    assert len({(await given.task_now(workbench, task))["not_before"] for task in tasks}) == len(tasks)


@pytest.mark.parametrize("name", HOLDING)
async def test_an_agent_without_the_lease_cannot_act_on_the_task(
    workbench: Workbench, ada: Admitted, bob: Admitted, clock: Clock, name: str
) -> None:
    task = await given.task(workbench)

    async def lost(agent: Admitted, **more: int) -> dict[str, Any]:
        with pytest.raises(Conflict, match="LEASE_LOST") as refused:
            await do(workbench, agent, name, task, **more)
        return refused.value.details

    await lost(ada)
    await given.claim(workbench, ada)
    await lost(bob)
    clock.forward(121)
    await sweep(workbench)
    assert await lost(ada) == {"status": "pending", "attempt": 1}
    clock.forward(13)
    await sweep(workbench)
    await given.claim(workbench, bob)
    before = await given.task_now(workbench, task)
    await lost(ada)
    await lost(ada, attempt=2)
    assert await given.task_now(workbench, task) == before
    await do(workbench, bob, "complete_task", task, attempt=2)
    await lost(bob)
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await do(workbench, ada, name, 99)


@pytest.mark.parametrize("name", HOLDING)
async def test_a_call_for_another_attempt_of_the_same_agent_is_refused(
    workbench: Workbench, ada: Admitted, name: str
) -> None:
    task = await given.task(workbench)
    await given.claim(workbench, ada)
    await do(workbench, ada, "release_task", task)
    await given.claim(workbench, ada)
    before = await given.task_now(workbench, task)
    for attempt in (1, 3, 0):
        with pytest.raises(Conflict, match=r"LEASE_LOST.*\(it is claimed, attempt 2\)"):
            await do(workbench, ada, name, task, attempt=attempt)
    assert await given.task_now(workbench, task) == before
    await do(workbench, ada, name, task, attempt=2)
