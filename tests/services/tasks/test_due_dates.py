"""The days by which tasks are due, and those that are overdue."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests import given
from tests.conftest import Admitted
from workbench.app import Workbench
from workbench.model import SECOND
from workbench.rules.tasks.lifecycle import is_overdue

pytestmark = pytest.mark.anyio


def day(workbench: Workbench, later: int) -> str:
    """The day that is so many days after the present one."""
    now = datetime.fromtimestamp(workbench.store.now() // SECOND)
    return (now.date() + timedelta(days=later)).isoformat()


async def found(workbench: Workbench, **filters: object) -> list[tuple[int, bool]]:
    """The tasks of a list, each with whether it is overdue."""
    page = await workbench.call("list_tasks", **filters)
    return [(task["id"], task["overdue"]) for task in page["tasks"]]


async def test_tasks_are_listed_by_the_day_they_are_due_and_open_ones_become_overdue(
    workbench: Workbench, ada: Admitted
) -> None:
    days = (None, day(workbench, 1), day(workbench, -1), day(workbench, 0), day(workbench, -2))
    never, tomorrow, yesterday, today, done = [await given.task(workbench, due=due) for due in days]
    await given.claim(workbench, ada, done)
    assert (await found(workbench, due="overdue", sort="due")) == [(done, True), (yesterday, True)]
    await given.done_by(workbench, ada, "complete_task", done)
    assert await found(workbench, due="overdue") == [(yesterday, True)]
    assert await found(workbench, due=day(workbench, 0), sort="newest") == [(today, False), (yesterday, True)]
    pages, cursor = [], None
    while True:
        page = await workbench.call("list_tasks", sort="due", limit=2, cursor=cursor)
        pages += [task["id"] for task in page["tasks"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert pages == [done, yesterday, today, tomorrow, never]


async def test_a_day_is_set_changed_removed_and_inherited_by_no_subtask(workbench: Workbench) -> None:
    task = await given.task(workbench, due="2027-01-31")
    part = await workbench.call("create_subtask", parent_task_id=task, title="Part")
    assert part["due"] is None
    assert (await workbench.call("edit_task", task_id=task, due="2027-02-28"))["due"] == "2027-02-28"
    assert (await workbench.call("edit_task", task_id=task, title="Other"))["due"] == "2027-02-28"
    assert (await workbench.call("edit_task", task_id=task, due="none"))["due"] is None


@pytest.mark.parametrize("due", ["2027-02-29", "20270131", "2027-W01-1", "1800000000", "2027-01-31T12:00:00Z", ""])
async def test_what_is_no_day_is_refused(workbench: Workbench, due: str) -> None:
    given_to = workbench.call("create_task", title="A", persona_id="tester", due=due)
    assert "due: must be a day, such as 2026-12-31" in (await given.refuses("INVALID_ARGUMENTS", given_to)).message
    text = f"plan: p\ntasks:\n- {{name: a, title: A, persona: tester, due: '{due}'}}\n"
    refused = await given.refuses("PLAN_INVALID", workbench.call("create_plan", text=text))
    assert "line 3: due: must be a day, such as 2026-12-31" in refused.message


def test_a_task_is_not_overdue_on_the_day_it_is_due_or_when_it_is_over() -> None:
    noon = round(datetime(2027, 1, 31, 12).timestamp()) * SECOND
    assert [is_overdue("pending", f"2027-01-{d}", noon) for d in (30, 31)] == [True, False]
    assert not any(is_overdue(state, "2027-01-01", noon) for state in ("completed", "failed", "cancelled"))
