"""Editing a task that is in no plan."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admitted
from workbench.app import Workbench

pytestmark = pytest.mark.anyio


async def test_a_task_outside_of_plans_is_edited(workbench: Workbench, ada: Admitted) -> None:
    task = await given.task(workbench, persona_id="tester", run="exit 1", max_retries=0)
    changes = {"title": "Other", "run": ["true"], "persona_id": "Implementer", "target_worktree": "lab"}
    edited = await workbench.call("edit_task", task_id=task, **changes)
    assert (edited["title"], edited["run"], edited["worktree"]) == ("Other", ["true"], "lab")
    assert (edited["persona_id"], edited["max_retries"]) == ("implementer", 0)
    assert (await given.kinds(workbench, subject=f"task:{task}"))[-1] == "task.changed"
    await workbench.call("edit_task", task_id=task, max_retries=2, on_failure="ignore")
    now = await given.task_now(workbench, task)
    assert (now["title"], now["max_retries"], now["on_failure"]) == ("Other", 2, "ignore")
    await given.refuses("INVALID_ARGUMENTS", workbench.call("edit_task", task_id=task))


async def test_a_task_that_is_held_or_over_or_in_a_plan_is_not_edited(workbench: Workbench, ada: Admitted) -> None:
    task = await given.task(workbench)
    await given.claim(workbench, ada, task)
    await given.refuses("WRONG_STATE", workbench.call("edit_task", task_id=task, title="Other"))
    await workbench.call("create_plan", text="plan: p\ntasks:\n- {name: a, title: A, persona: tester}\n")
    await given.refuses("IN_PLAN", workbench.call("edit_task", task_id=2, title="Other"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("set_priority", {"task_id": 1, "priority": True}),
        ("create_task", {"title": "A", "persona_id": "tester", "max_retries": True}),
        ("create_task", {"title": "A", "persona_id": "tester", "lease_seconds": True}),
    ],
)
async def test_true_is_no_number(workbench: Workbench, name: str, arguments: dict[str, object]) -> None:
    await given.refuses("INVALID_ARGUMENTS", workbench.call(name, **arguments))


async def test_a_task_is_reserved_for_nobody_who_may_only_read(workbench: Workbench, ada: Admitted) -> None:
    task = await given.task(workbench)
    await workbench.call("update_agent", agent_id="ada", changes={"tool": "read"})
    refused = await given.refuses(
        "NOT_ADMITTED", workbench.call("reassign_task", task_id=task, assigned_agent_id="ada")
    )
    assert "may only read" in str(refused)
