"""Tasks that are opened again: retried with what was cancelled with them, retried now, reopened."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admitted
from workbench.app import Workbench
from workbench.errors import Conflict

pytestmark = pytest.mark.anyio


async def states(workbench: Workbench, *ids: int) -> list[str]:
    """The states of tasks."""
    return [(await given.task_now(workbench, task_id))["status"] for task_id in ids]


@pytest.fixture
async def tree(workbench: Workbench) -> list[int]:
    """A task, a subtask of it, one that is cancelled with that, and one that was cancelled before."""
    parent = await given.task(workbench)
    part, before = [await given.task(workbench, parent_task_id=parent) for _ in range(2)]
    follower = await given.task(workbench, dependencies=[part], on_failure="cancel")
    await workbench.call("cancel_task", task_id=before)
    return [parent, part, follower, before]


async def test_a_retry_names_what_stays_cancelled_and_retries_it_on_request(
    workbench: Workbench, tree: list[int]
) -> None:
    parent, part, follower, _ = tree
    cancelled = await workbench.call("cancel_task", task_id=parent)
    assert (cancelled["status"], cancelled["also_cancelled"]) == ("cancelled", [part, follower])
    retried = await workbench.call("retry_task", task_id=parent)
    assert (retried["also_retried"], retried["stay_cancelled"]) == ([], [part, follower])
    assert retried["note"] == f"Tasks {part}, {follower}, cancelled with it, stay cancelled."
    await workbench.call("cancel_task", task_id=parent)
    assert (await workbench.call("retry_task", task_id=part))["note"] == (
        f"Task {follower}, cancelled with it, stays cancelled. Its parent, task {parent}, is cancelled."
    )


async def test_what_was_cancelled_with_a_task_is_retried_with_it(
    workbench: Workbench, ada: Admitted, tree: list[int]
) -> None:
    parent, part, follower, _ = tree
    await workbench.call("cancel_task", task_id=parent)
    retried = await workbench.call("retry_task", task_id=parent, also_cancelled=True)
    assert (retried["also_retried"], retried["stay_cancelled"], retried["note"]) == ([part, follower], [], "")
    assert await states(workbench, *tree) == ["pending", "pending", "pending", "cancelled"]
    await given.end(workbench, ada, part, "failed")
    retried = await workbench.call("retry_task", task_id=part, also_cancelled=True)
    assert (retried["also_retried"], await states(workbench, *tree[:3])) == ([follower], ["pending"] * 3)


async def test_the_open_subtasks_of_a_task_that_is_over_are_named_and_can_be_cancelled(
    workbench: Workbench, ada: Admitted, tree: list[int]
) -> None:
    parent, part, follower, _ = tree
    await given.claim(workbench, ada, parent)
    done = await given.done_by(workbench, ada, "complete_task", parent)
    assert (done["status"], done["open_subtasks"]) == ("completed", [part])
    late = await workbench.call("create_subtask", parent_task_id=parent, title="Late", run="true")
    assert late["note"] == f"Its parent, task {parent}, is completed."
    over = await workbench.call("cancel_task", task_id=parent)
    assert (over["status"], over["also_cancelled"]) == ("completed", [part, late["id"], follower])
    with pytest.raises(Conflict, match=r"WRONG_STATE: The task is completed\. Only one that is claimed or"):
        await workbench.call("cancel_task", task_id=parent)


async def test_a_task_that_pauses_before_its_retry_is_retried_now(workbench: Workbench, ada: Admitted) -> None:
    task = await given.task(workbench, max_retries=3)
    await given.claim(workbench, ada, task)
    await given.done_by(workbench, ada, "fail_task", task, error_message="no")
    assert (await given.task_now(workbench, task))["not_before"] is not None
    retried = await workbench.call("retry_task", task_id=task)
    assert (retried["status"], retried["not_before"], retried["retry_count"]) == ("pending", None, 1)
    assert (await given.claim(workbench, ada))["id"] == task


async def test_a_completed_task_is_reopened_and_is_waited_for_again(workbench: Workbench, ada: Admitted) -> None:
    task = await given.task(workbench)
    later = await given.task(workbench, dependencies=[task])
    await given.end(workbench, ada, task)
    with pytest.raises(Conflict, match=r"WRONG_STATE.*completed"):
        await workbench.call("retry_task", task_id=task)
    assert (await workbench.call("reopen_task", task_id=task, reason="it was wrong"))["status"] == "pending"
    assert (await given.task_now(workbench, later))["blocked_by"] == [task]
    await given.end(workbench, ada, task)
    await given.end(workbench, ada, later)


async def test_what_was_removed_from_a_plan_is_not_opened_in_none(workbench: Workbench) -> None:
    plan = "plan: p\ntasks:\n- {name: a, title: A, persona: tester}\n- {name: b, title: B, persona: tester}\n"
    await workbench.call("create_plan", text=plan)
    await workbench.call("create_plan", text=plan.replace("- {name: b, title: B, persona: tester}\n", ""), update=True)
    for call in (
        workbench.call("retry_task", task_id=2),
        workbench.call("undo", subject="task:2", kind="task.cancelled"),
    ):
        assert "Put it into the text" in str(await given.refuses("REMOVED_FROM_PLAN", call))
    assert await states(workbench, 1, 2) == ["pending", "cancelled"]
