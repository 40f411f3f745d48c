"""The hours of a plan, as attempts and events tell them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Clock
from workbench.app import Workbench
from workbench.model import SECOND
from workbench.rules.failures import FailureKind
from workbench.services import approvals, holds
from workbench.services.processes import reattach
from workbench.state.settings import Settings
from workbench.store.base import Tx

pytestmark = pytest.mark.anyio

PLAN = (
    "plan: tidy\ntasks:\n  - {name: a, title: A, persona: implementer}\n  - {name: b, title: B, persona: implementer}\n"
)


@pytest.fixture
async def workbench(settings: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    """An open project whose time only the test moves, and whose leases outlast that."""
    async with Workbench.open(settings.model_copy(update={"lease_seconds": 86_400.0}), clock=clock) as opened:
        yield opened


async def test_the_account_of_hours_says_why_nothing_was_done(
    workbench: Workbench, admit: Admit, clock: Clock, settings: Settings
) -> None:
    ada = (await admit("ada")).caller
    ask = partial(workbench.dispatch, ada)
    await workbench.call("create_plan", text=PLAN)
    assert (await workbench.call("get_plan_hours", plan="tidy"))["hours"] == []
    clock.forward(3_600 - clock.now / SECOND % 3_600)
    first = (await ask("claim_task", {}))["task"]["id"]
    clock.forward(1_200)
    await ask("complete_task", {"task_id": first})

    def limit(tx: Tx) -> None:
        until = tx.now + 7_200 * SECOND
        holds.hold(tx, settings, "account:anthropic-1", FailureKind.LIMIT, "429: too much.", until)

    await workbench.store.write(limit)
    clock.forward(3_600)
    await reattach.recover(workbench._ctx, end_workers=False)
    clock.forward(3_600)
    second = (await ask("claim_task", {}))["task"]["id"]
    clock.forward(60)
    await ask("complete_task", {"task_id": second})
    hours = (await workbench.call("get_plan_hours", plan="tidy"))["hours"]
    assert [(hour["tasks"], hour["worked_seconds"], hour["idle"]) for hour in hours] == [
        ([first], 1_200, ["no server ran (40 min)"]),
        ([], 0, ["no server ran (20 min)", "account:anthropic-1 was held: 429: too much. (40 min)"]),
        ([second], 60, ["account:anthropic-1 was held: 429: too much. (20 min)"]),
    ]
    assert [hour["happened"] for hour in hours] == [
        [f"completed: {first}", "held: account:anthropic-1"],
        ["server started again"],
        [f"completed: {second}"],
    ]
    assert [hour["unexplained_seconds"] for hour in hours] == [0, 0, 0]


async def test_a_question_about_another_plan_explains_no_hour_of_this_one(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = (await admit("ada")).caller
    await workbench.call("create_plan", text=PLAN)
    other = await given.task(workbench, persona_id="reviewer")
    clock.forward(3_600 - clock.now / SECOND % 3_600)
    first = (await workbench.dispatch(ada, "claim_task", {}))["task"]["id"]
    await workbench.dispatch(ada, "complete_task", {"task_id": first})
    asked = [
        await workbench.store.write(partial(approvals.ask, kind="failure", subject=subject, payload={}))
        for subject in (f"task:{other}", "worktree:other", "plan:other", "budget:plan:other", "budget:plan:tidy")
    ]
    clock.forward(600)
    second = (await workbench.dispatch(ada, "claim_task", {}))["task"]["id"]
    await workbench.dispatch(ada, "complete_task", {"task_id": second})
    [hour] = (await workbench.call("get_plan_hours", plan="tidy"))["hours"]
    assert hour["idle"] == [f"approval {asked[-1]} waited for you (10 min)"]


async def test_a_full_disk_is_noted_once_when_there_is_space_again(workbench: Workbench, clock: Clock) -> None:
    def told() -> Any:
        return workbench.call("list_events", kinds=["store.was_full"])

    noting = workbench.duties["noting that the disk was full"]
    workbench.store._full = (clock.now, None)
    await noting.perform(workbench._ctx)
    assert (await told())["events"] == [], "it is full"
    clock.forward(600)
    await workbench.store.write(lambda tx: tx.emit("task.changed", "task:1"))
    for _ in range(2):
        await noting.perform(workbench._ctx)
    [event] = (await told())["events"]
    assert event["data"]["until"] - event["data"]["since"] == 600 * SECOND
