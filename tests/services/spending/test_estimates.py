"""What the tasks of a plan may cost, by attempts that have ended and the ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests import given
from tests.conftest import Clock, admitted
from workbench.app import Workbench
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio

PLAN = """\
plan: {name}
tasks:
- {{name: fit, title: Fit, persona: implementer, lease_seconds: 4000}}
- {{name: plot, title: Plot, persona: implementer, lease_seconds: 4000}}
- {{name: judge, title: Judge, persona: reviewer}}
"""


@pytest.fixture
async def workbench(migrated: Settings, clock: Clock) -> AsyncIterator[Workbench]:
    async with Workbench.open(migrated, clock=clock) as opened:
        yield opened


async def test_a_plan_is_estimated_by_what_its_tasks_took_and_cost_before(workbench: Workbench, clock: Clock) -> None:
    await workbench.call("create_plan", text=PLAN.format(name="one"))
    nothing = await workbench.call("estimate_costs", plan="one")
    assert nothing["sentence"] == "Nothing is known of what such tasks take and cost."
    ada = await admitted(workbench, "ada")
    for task, seconds, usd in ((1, 600, 0.5), (2, 60, 0.1)):
        await given.claim(workbench, ada, task)
        about = {"model": "m", "task_id": task, "attempt": 1, "input_tokens": 1, "cost_usd": usd}
        await workbench.dispatch(ada.caller, "report_usage", about)
        clock.forward(seconds)
        await given.done_by(workbench, ada, "complete_task", task)
    await workbench.call("create_plan", text=PLAN.format(name="two").replace("Plot", "Draw"))
    estimate = await workbench.call("estimate_costs", plan="two", staff="implementer=2:claude")
    shown = [(one["basis"], one["attempts"], one["seconds"], one["usd"]) for one in estimate["tasks"]]
    assert shown == [("task", 1, 600, 0.5), ("persona", 2, 330, 0.3), (None, 0, None, None)]
    assert estimate["sentence"] == (
        "2 of 3 tasks are like earlier ones (2 attempts): 16 min (11 min to 20 min) of work are expected; "
        "$0.80 ($0.60 to $1.00) cost."
    )
    left = await workbench.call("estimate_costs", plan="one")
    assert [one["task_id"] for one in left["tasks"]] == [3], "what is done is not estimated"
    await given.refuses("PLAN_NOT_FOUND", workbench.call("estimate_costs", plan="none"))
    await given.refuses("BAD_STAFF", workbench.call("estimate_costs", plan="one", staff="="))
