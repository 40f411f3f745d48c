"""Reading one task or several in full, and the log of a task."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound

pytestmark = pytest.mark.anyio


async def test_several_tasks_are_read_in_full_in_the_order_that_is_asked_for(workbench: Workbench) -> None:
    ids = [await given.task(workbench) for _ in range(3)]
    asked = [ids[2], 99, ids[0], ids[2]]
    assert (await workbench.call("get_tasks", task_ids=asked))["tasks"] == [
        await given.task_now(workbench, task_id) for task_id in (ids[2], ids[0])
    ]
    assert (await workbench.call("get_tasks", task_ids=[]))["tasks"] == []
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("get_tasks", task_ids=list(range(101)))


async def test_a_log_is_read_in_pages_forward_and_backward(workbench: Workbench, ada: Admitted) -> None:
    task, other = await given.task(workbench), await given.task(workbench)
    for held in (task, other):
        await given.claim(workbench, ada, held)
    for note in "abcde":
        await given.done_by(workbench, ada, "report_task_progress", task, progress_note=note, level="warn")
        await given.done_by(workbench, ada, "report_task_progress", other, progress_note=f"not {note}")
    for newest_first, expected in ((False, ["ab", "cd", "e", ""]), (True, ["ed", "cb", "a", ""])):
        cursor, pages = 0, []
        for _ in range(4):
            how = {"cursor": cursor, "limit": 2, "newest_first": newest_first}
            lines = (await workbench.call("get_task_logs", task_id=task, **how))["lines"]
            assert {(line["agent_id"], line["level"]) for line in lines} <= {("ada", "warn")}
            pages.append("".join(line["message"] for line in lines))
            cursor = lines[-1]["id"] if lines else cursor
        assert pages == expected


ABOUT_A_TASK: dict[str, dict[str, Any]] = {
    **{"get_task": {}, "get_task_logs": {}, "get_task_status": {}, "wait_for_task": {}, "cancel_task": {}},
    **{"retry_task": {}, "reassign_task": {"assigned_agent_id": None}, "set_priority": {"priority": 1}},
}


async def test_a_missing_task_can_be_neither_read_nor_changed(workbench: Workbench, admit: Admit) -> None:
    pam = await admit("pam", role="planner")
    for name, more in ABOUT_A_TASK.items():
        with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
            await workbench.call(name, task_id=7, **more)
        with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
            await given.done_by(workbench, pam, name, 7, **more)


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ({"plan": "ghost"}, "PLAN_NOT_FOUND"),
        ({"persona_id": "ghost"}, "PERSONA_NOT_FOUND"),
        ({"assigned_agent_id": "ghost"}, "AGENT_NOT_FOUND"),
        ({"session_id": "ghost"}, "SESSION_NOT_FOUND"),
        ({"worktree": "ghost"}, "WORKTREE_NOT_FOUND"),
        ({"parent_task_id": 404}, "TASK_NOT_FOUND"),
    ],
)
async def test_a_filter_for_what_there_is_not_is_refused(
    workbench: Workbench, named: dict[str, Any], code: str
) -> None:
    await given.refuses(code, workbench.call("list_tasks", **named))


async def test_tasks_are_found_by_a_part_of_their_title_description_or_name(workbench: Workbench) -> None:
    await given.task(workbench, "Count the 100% of it")
    await given.task(workbench, description="Something to COUNT")
    await workbench.call("create_plan", text="plan: p\ntasks:\n- {name: recount, title: X, persona: tester}\n")
    for part, expected in {"count": [1, 2, 3], "0%": [1], "_": []}.items():
        found = (await workbench.call("list_tasks", search=part))["tasks"]
        assert [task["id"] for task in found] == expected


async def test_the_tasks_that_can_never_begin_are_counted_apart(workbench: Workbench, ada: Admitted) -> None:
    dead, alive = await given.task(workbench), await given.task(workbench)
    behind = await given.task(workbench, dependencies=[dead])
    parent = await given.task(workbench, dependencies=[behind], on_failure="ignore")
    await given.task(workbench, parent_task_id=parent)
    await given.task(workbench, dependencies=[dead], on_failure="ignore")
    await given.task(workbench, dependencies=[alive])
    part = await given.task(workbench, parent_task_id=alive, dependencies=[dead])
    await workbench.call("add_dependency", task_id=alive, depends_on=part)
    await given.task(workbench, parent_task_id=alive, dependencies=[await given.task(workbench)])
    await workbench.call("cancel_task", task_id=dead)
    counted = await workbench.call("count_tasks")
    assert (counted["counts"]["pending"], counted["blocked"], counted["stuck"]) == (9, 7, 6)
    await workbench.call("retry_task", task_id=dead)
    assert (await workbench.call("count_tasks"))["stuck"] == 0
