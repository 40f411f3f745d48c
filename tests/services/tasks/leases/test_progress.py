"""Starting, progress, and the ways a task ends or is tried again."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admitted, Clock
from tests.services.tasks.leases.calls import beat, do, enter, kinds, sweep
from workbench.app import Workbench
from workbench.errors import BadInput
from workbench.model import SECOND, iso

pytestmark = pytest.mark.anyio


async def test_a_task_starts_once_by_start_task_or_by_progress(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    one, two = await given.task(workbench), await given.task(workbench)
    await given.claim(workbench, ada, one)
    began = clock.now
    for _ in range(2):
        assert (await do(workbench, ada, "start_task", one))["status"] == "in_progress"
        clock.forward(1)
    await given.claim(workbench, ada, two)
    await do(workbench, ada, "report_task_progress", two, percent_complete=7)
    for task, at in ((one, began), (two, clock.now)):
        found = await given.task_now(workbench, task)
        assert (found["started_at"], found["attempts"][0]["started_at"]) == (iso(at), iso(at))
    assert (await kinds(workbench)).count("task.started") == 2


async def test_progress_keeps_notes_and_percentages_and_renews_the_lease(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    task = await given.task(workbench)
    await given.claim(workbench, ada)
    for note, percent, shown in (("a", 30, 30), ("b", None, 30), ("", 40, 40), ("", 10, 10)):
        clock.forward(100)
        said = {"progress_note": note} | ({"percent_complete": percent} if percent else {})
        line = await do(workbench, ada, "report_task_progress", task, agent_id="ada", **said)
        assert (line["progress"], line["status"]) == (shown, "in_progress")
    assert (await given.task_now(workbench, task))["lease_expires_at"] == iso(clock.now + 120 * SECOND)
    lines = (await workbench.call("get_task_logs", task_id=task))["lines"]
    assert [(x["message"], x["level"]) for x in lines] == [("a", "info"), ("b", "info")]
    for bad in (
        {"percent_complete": 101},
        {"percent_complete": -1},
        {"level": "loud"},
        {"progress_note": "x" * 10_001},
    ):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await do(workbench, ada, "report_task_progress", task, **bad)


async def test_completing_keeps_the_result_and_implies_the_start(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    result = {"rows": 344, "text": "é\n", "none": None, "list": [1.5, True]}
    for seconds in (3, 0):
        task = await given.task(workbench)
        await given.claim(workbench, ada)
        if seconds:
            await do(workbench, ada, "start_task", task)
        clock.forward(3)
        line = await do(workbench, ada, "complete_task", task, result_data=result, artifacts=["a.csv", "commit:1"])
        assert (line["status"], line["progress"]) == ("completed", 100)
        found = await given.task_now(workbench, task)
        assert (found["result_data"], found["artifacts"]) == (result, ["a.csv", "commit:1"])
        assert (found["completed_at"], found["lease_expires_at"], found["error_message"]) == (
            iso(clock.now),
            None,
            None,
        )
        (attempt,) = found["attempts"]
        assert (attempt["outcome"], attempt["ended_at"]) == ("completed", iso(clock.now))
        assert attempt["started_at"] == found["started_at"] == iso(clock.now - seconds * SECOND)
        lived = await given.kinds(workbench, subject=f"task:{task}")
        assert lived == [f"task.{kind}" for kind in ("created", "claimed", "started", "completed")]
        assert (await beat(workbench, ada))["holding"] == []


async def test_a_result_has_a_limit_and_the_task_stays_held(workbench: Workbench, ada: Admitted) -> None:
    task = await given.task(workbench)
    await given.claim(workbench, ada)
    for bad in ({"result_data": "x" * 1_048_576}, {"artifacts": ["x" * 1_048_576]}):
        with pytest.raises(BadInput, match="TOO_LARGE"):
            await do(workbench, ada, "complete_task", task, **bad)
    abyss: Any = None
    for _ in range(100):
        abyss = [abyss]
    for bad in (
        *({"result_data": float("nan")}, {"result_data": abyss}, {"result_data": {"\ud800": 1}}),
        *({"artifacts": ["a"] * 1_001}, {"artifacts": [1]}),
    ):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await do(workbench, ada, "complete_task", task, **bad)
    assert (await given.task_now(workbench, task))["status"] == "claimed"
    await do(workbench, ada, "complete_task", task, result_data="x" * 1_048_574)


async def test_a_failed_task_is_tried_again_after_pauses_that_double(
    workbench: Workbench, ada: Admitted, clock: Clock
) -> None:
    task = await given.task(workbench, max_retries=3)
    for attempt, pause in ((1, 10), (2, 20), (3, 25)):
        assert (await given.claim(workbench, ada))["attempt"] == attempt
        await do(workbench, ada, "report_task_progress", task, percent_complete=50)
        line = await do(workbench, ada, "fail_task", task, error_message=f"e{attempt}")
        assert (line["status"], line["progress"], line["assigned_agent_id"]) == ("pending", 0, None)
        found = await given.task_now(workbench, task)
        assert (found["retry_count"], found["error_message"]) == (attempt, f"e{attempt}")
        assert iso(clock.now + pause * SECOND) <= found["not_before"] <= iso(clock.now + pause * 5 * SECOND // 4)
        clock.forward(pause - 0.001)
        await sweep(workbench)
        assert await given.claim(workbench, ada) is None
        clock.forward(pause / 4 + 0.001)
        await sweep(workbench)
    await given.claim(workbench, ada)
    assert (await do(workbench, ada, "fail_task", task, error_message="e4"))["status"] == "failed"
    found = await given.task_now(workbench, task)
    assert (found["error_message"], found["retry_count"], found["completed_at"]) == ("e4", 3, iso(clock.now))
    assert [(a["outcome"], a["error_message"]) for a in found["attempts"]] == [("failed", f"e{n}") for n in range(1, 5)]
    tries = ["claimed", "started", "progressed", "retried", "retry_ready"] * 3
    assert await kinds(workbench) == [f"task.{kind}" for kind in ("created", *tries, "claimed", "failed")]


async def test_a_task_that_is_cancelled_by_the_end_of_another_lease_does_not_come_back(
    workbench: Workbench, clock: Clock
) -> None:
    """Both leases end in one look, as after a night in which nobody looked."""
    ada, bob = await enter(workbench, "ada"), await enter(workbench, "bob")
    first = await given.task(workbench, max_retries=0)
    second = await given.task(workbench, on_failure="cancel")
    below = await given.task(workbench, parent_task_id=second)
    await given.claim(workbench, ada, first)
    await given.claim(workbench, bob, below)
    await workbench.call("add_dependency", task_id=second, depends_on=first)
    clock.forward(3600)
    assert await sweep(workbench) == 1
    assert [(await given.task_now(workbench, task))["status"] for task in (first, second, below)] == [
        "failed",
        *["cancelled"] * 2,
    ]
    assert "task.expired" not in await kinds(workbench)
    assert [a["outcome"] for a in (await given.task_now(workbench, below))["attempts"]] == ["cancelled"]


async def test_a_failure_without_a_retry_is_final(workbench: Workbench, ada: Admitted) -> None:
    for max_retries, retryable in ((0, True), (2, False)):
        task = await given.task(workbench, max_retries=max_retries)
        await given.claim(workbench, ada)
        line = await do(workbench, ada, "fail_task", task, retryable=retryable)
        assert (line["status"], line["assigned_agent_id"]) == ("failed", "ada")
        assert (await given.task_now(workbench, task))["retry_count"] == 0


async def test_a_released_task_is_claimable_at_once_and_costs_no_retry(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    task = await given.task(workbench, max_retries=0)
    for agent in (ada, bob, ada):
        await given.claim(workbench, agent)
        await do(workbench, agent, "report_task_progress", task, percent_complete=50)
        line = await do(workbench, agent, "release_task", task, reason="Lunch.")
        assert (line["status"], line["progress"], line["assigned_agent_id"]) == ("pending", 0, None)
    found = await given.claim(workbench, bob)
    assert (found["attempt"], found["retry_count"]) == (4, 0)
    assert [(a["agent_id"], a["outcome"], a["error_message"]) for a in found["attempts"]] == [
        *(("ada", "released", "Lunch."), ("bob", "released", "Lunch."), ("ada", "released", "Lunch.")),
        ("bob", None, None),
    ]
