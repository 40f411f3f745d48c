"""What tasks waited for, where a wait ends without a claim."""

from __future__ import annotations

import pytest

from tests.analytics.conftest import rows
from tests.conftest import Admit, Clock
from workbench.analytics.live import Live
from workbench.app import Workbench

pytestmark = pytest.mark.anyio


WAITS = "SELECT attempt, waits_for, seconds, ended_at IS NULL FROM waits ORDER BY began_at"
"""The attempt that each wait was before, what it waited for, how long, and whether it goes on."""


async def test_a_wait_that_a_cancellation_ended_counts_also_after_the_task_was_revived(
    workbench: Workbench, admit: Admit, clock: Clock
) -> None:
    ada = (await admit("ada")).caller
    await workbench.call("create_task", title="Count", persona_id="implementer", priority=1)
    clock.forward(20)
    await workbench.call("cancel_task", task_id=1)
    clock.forward(100)  # nobody waits for it
    await workbench.call("retry_task", task_id=1)
    clock.forward(5)
    await workbench.dispatch(ada, "claim_task", {"task_id": 1})
    assert await rows(Live(), workbench, WAITS) == [(1, "agent", 20.0, False), (1, "agent", 5.0, False)]


async def test_each_of_several_cancellations_ends_a_wait(workbench: Workbench, clock: Clock) -> None:
    await workbench.call("create_task", title="Collect", persona_id="implementer")
    await workbench.call("create_task", title="Count", persona_id="implementer", dependencies=[1])
    for seconds in (10, 30):
        clock.forward(seconds)
        await workbench.call("cancel_task", task_id=2)
        clock.forward(100)
        await workbench.call("retry_task", task_id=2)
    clock.forward(3)
    await workbench.call("create_task", title="The time of the last event", persona_id="reviewer")
    found = await rows(Live(), workbench, WAITS)
    assert [one for one in found if one[1] == "dependency"] == [
        (1, "dependency", 10.0, False),
        (1, "dependency", 30.0, False),
        (1, "dependency", 3.0, True),
    ]
