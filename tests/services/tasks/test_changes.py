"""Changes of tasks: broken down, retried, reassigned, reprioritised."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused

pytestmark = pytest.mark.anyio


async def fail(workbench: Workbench, agent: Admitted, task_id: int, **more: Any) -> dict[str, Any]:
    """Claim a task and fail it; it may be tried again."""
    await given.claim(workbench, agent, task_id)
    return await given.done_by(workbench, agent, "fail_task", task_id, error_message="no", **more)


async def let_rest(workbench: Workbench, task_id: int) -> None:
    """Return once the pause before another attempt is over."""
    async with workbench.feed.subscribe("task.retry_ready") as heard:
        while (await given.task_now(workbench, task_id))["not_before"] is not None:
            await anext(heard)


async def events(workbench: Workbench, task_id: int) -> list[tuple[str, dict[str, Any]]]:
    """The events of a task after its creation, with their data."""
    found = (await workbench.call("list_events", subject=f"task:{task_id}", limit=1000))["events"]
    return [(event["kind"].removeprefix("task."), event["data"]) for event in found[1:]]


# Broken down


async def test_the_holder_of_a_task_creates_subtasks_that_inherit_from_it(workbench: Workbench, ada: Admitted) -> None:
    parent = await given.task(workbench, priority=7)
    await given.claim(workbench, ada)
    subtask = await workbench.dispatch(ada.caller, "create_subtask", {"parent_task_id": parent, "title": "A part"})
    assert (subtask["parent_task_id"], subtask["persona_id"], subtask["priority"]) == (parent, "implementer", 7)
    assert (subtask["created_by"], subtask["status"], subtask["blocked"]) == ("ada", "pending", False)
    said = {"persona_id": "tester", "priority": 0, "dependencies": [subtask["id"]], "parent_task_id": subtask["id"]}
    new = {"title": "A part of it", "target_worktree": "lab", **said}
    other = await workbench.dispatch(ada.caller, "create_subtask", new)
    assert ({key: other[key] for key in said}, other["worktree"]) == (said, "lab")
    (node,) = (await workbench.call("get_task_tree"))["tasks"]
    assert (node["open_below"], node["children"][0]["open_below"]) == (2, 1)


async def test_a_task_waits_for_the_parts_it_was_broken_into_unless_they_wait_for_it(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    parent = await given.task(workbench)
    await given.claim(workbench, ada)
    part = {"parent_task_id": parent, "title": "A part", "blocks_parent": True}
    with pytest.raises(Conflict, match="DEPENDENCY_CYCLE"):
        await workbench.dispatch(ada.caller, "create_subtask", part | {"dependencies": [parent]})
    assert [task["id"] for task in (await workbench.call("list_tasks"))["tasks"]] == [parent]
    parts = [(await workbench.dispatch(ada.caller, "create_subtask", part))["id"] for _ in range(2)]
    assert (await given.task_now(workbench, parent))["blocked_by"] == parts
    with pytest.raises(Conflict, match="DEPENDENCIES_OPEN"):
        await given.done_by(workbench, ada, "complete_task", parent)
    released = await given.done_by(workbench, ada, "release_task", parent)
    assert (released["status"], released["blocked"]) == ("pending", True)
    for expected in parts:
        assert (await given.claim(workbench, bob))["id"] == expected
        await given.done_by(workbench, bob, "complete_task", expected)
    assert (await given.claim(workbench, ada))["id"] == parent
    await given.done_by(workbench, ada, "complete_task", parent)
    (node,) = (await workbench.call("get_task_tree"))["tasks"]
    assert (node["status"], node["open_below"], node["completed_below"]) == ("completed", 0, 2)


async def test_only_the_holder_a_planner_or_the_operator_creates_subtasks(
    workbench: Workbench, ada: Admitted, admit: Admit
) -> None:
    pam, parent = await admit("pam", role="planner"), await given.task(workbench)
    part = {"parent_task_id": parent, "title": "A part"}
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "create_subtask", part)
    assert (await workbench.dispatch(pam.caller, "create_subtask", part))["created_by"] == "pam"
    assert (await workbench.call("create_subtask", **part))["created_by"] == "operator"
    await given.end(workbench, ada, parent)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "create_subtask", part)
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await workbench.dispatch(pam.caller, "create_subtask", part | {"parent_task_id": 99})


# Tried again


@pytest.mark.parametrize("end", ["failed", "cancelled"])
async def test_a_dead_task_is_retried_with_all_its_retries(workbench: Workbench, ada: Admitted, end: str) -> None:
    task = await given.task(workbench, max_retries=1)
    await fail(workbench, ada, task)
    await let_rest(workbench, task)
    if end == "failed":
        await fail(workbench, ada, task)
    else:
        await workbench.call("cancel_task", task_id=task, reason="Not now.")
    (dead,) = (await workbench.call("list_tasks", status=end))["tasks"]
    assert (dead["error_message"], dead["retry_count"]) == ({"failed": "no", "cancelled": "Not now."}[end], 1)
    again = await workbench.call("retry_task", task_id=task, reason="Now.")
    assert (again["status"], again["retry_count"], again["max_retries"]) == ("pending", 0, 1)
    assert (again["error_message"], again["completed_at"], again["assigned_agent_id"]) == (None, None, None)
    assert (await events(workbench, task))[-1] == ("revived", {"reason": "Now."})
    with pytest.raises(Conflict, match=r"WRONG_STATE.*pending"):
        await workbench.call("retry_task", task_id=task)
    await fail(workbench, ada, task)
    found = await given.task_now(workbench, task)
    assert (found["status"], found["retry_count"]) == ("pending", 1)
    assert [a["attempt"] for a in found["attempts"]] == ([1, 2, 3] if end == "failed" else [1, 2])
    await let_rest(workbench, task)
    held = await given.claim(workbench, ada, task)
    with pytest.raises(Conflict, match=r"WRONG_STATE.*claimed"):
        await workbench.call("retry_task", task_id=task)
    assert await given.claim(workbench, ada) == held


async def test_retrying_a_task_may_set_its_maximum_of_retries(workbench: Workbench, ada: Admitted) -> None:
    task = await given.task(workbench, max_retries=0)
    for retries, after in ((None, "failed"), (1, "pending")):
        await workbench.call("cancel_task", task_id=task)
        made = await workbench.call("retry_task", task_id=task, max_retries=retries)
        assert made["max_retries"] == (retries or 0)
        assert (await fail(workbench, ada, task))["status"] == after
        if after == "failed":
            await workbench.call("retry_task", task_id=task)
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("retry_task", task_id=task, max_retries=101)


async def test_errors_of_some_classes_are_never_tried_again(workbench: Workbench, ada: Admitted) -> None:
    never = ["ValueError", "PermissionDenied"]
    one, two, three = [await given.task(workbench, no_retry=never) for _ in range(3)]
    assert (await fail(workbench, ada, one, error_class="json.valueerror"))["status"] == "failed"
    assert (await fail(workbench, ada, two, error_class="OSError"))["status"] == "pending"
    assert (await fail(workbench, ada, three))["status"] == "pending"
    task = await given.task_now(workbench, one)
    assert (task["no_retry"], task["attempts"][0]["error_class"]) == (never, "json.valueerror")
    told = {"attempt": 1, "error": "no", "error_class": "json.valueerror"}
    assert (await events(workbench, one))[-1] == ("failed", told)


# Given to somebody else


async def test_a_task_is_given_to_one_agent_and_to_anybody_again(
    workbench: Workbench, ada: Admitted, admit: Admit
) -> None:
    rex, task = await admit("rex", "reviewer"), await given.task(workbench)

    async def give(to: str | None, **more: str) -> None:
        await workbench.call("reassign_task", task_id=task, assigned_agent_id=to, **more)

    await give("rex", reason="He knows it.")
    assert await given.claim(workbench, ada) is None
    with pytest.raises(Conflict, match="TASK_NOT_CLAIMABLE"):
        await given.claim(workbench, ada, task)
    await give(None)
    assert await given.claim(workbench, rex) is None
    await give("rex")
    assert (await given.claim(workbench, rex))["id"] == task
    assert (await events(workbench, task))[:2] == [
        ("reassigned", {"before": None, "assigned_agent_id": "rex", "reason": "He knows it.", "held": False}),
        ("reassigned", {"before": "rex", "assigned_agent_id": None, "reason": "", "held": False}),
    ]
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await give("ghost")
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("reassign_task", task_id=task)
    await workbench.call("revoke_agent", agent_id="ada")
    with pytest.raises(Conflict, match="NOT_ADMITTED: ada was revoked"):
        await given.task(workbench, assigned_agent_id="ada")


async def test_reassigning_a_held_task_takes_it_from_its_holder_but_costs_no_retry(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    task = await given.task(workbench, max_retries=0)
    await given.claim(workbench, ada)
    with pytest.raises(Conflict, match="ALREADY_THEIRS"):
        await workbench.call("reassign_task", task_id=task, assigned_agent_id="ada")
    await workbench.call("reassign_task", task_id=task, assigned_agent_id="bob", reason="Too slow.")
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await given.done_by(workbench, ada, "complete_task", task)
    assert await given.claim(workbench, ada) is None
    found = await given.claim(workbench, bob)
    assert (found["id"], found["attempt"], found["retry_count"]) == (task, 2, 0)
    assert [(a["agent_id"], a["outcome"], a["error_message"]) for a in found["attempts"]] == [
        *(("ada", "reassigned", "Too slow."), ("bob", None, None)),
    ]
    assert [kind for kind, _ in await events(workbench, task)] == ["claimed", "released", "reassigned", "claimed"]


# Put forward and back


async def test_a_higher_priority_is_claimed_first_from_then_on(workbench: Workbench, ada: Admitted) -> None:
    one, two, three = [await given.task(workbench) for _ in range(3)]
    assert (await workbench.call("set_priority", task_id=three, priority=501))["priority"] == 501
    await workbench.call("set_priority", task_id=one, priority=-1)
    available = await workbench.dispatch(ada.caller, "get_available_tasks", {})
    assert [task["id"] for task in available["tasks"]] == [three, two, one]
    assert await events(workbench, three) == [("prioritised", {"priority": 501, "before": 500})]
    for bad in (1_000_001, -1_000_001, 1.5, None):
        with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
            await workbench.call("set_priority", task_id=one, priority=bad)


# Who may


STEERING: dict[str, dict[str, Any]] = {
    "retry_task": {},
    "reassign_task": {"assigned_agent_id": None},
    "set_priority": {"priority": 1},
    "cancel_task": {},
}


async def test_workers_make_and_steer_no_tasks(workbench: Workbench, ada: Admitted) -> None:
    task = await given.task(workbench)
    for name, more in STEERING.items():
        with pytest.raises(Refused, match="FORBIDDEN"):
            await given.done_by(workbench, ada, name, task, **more)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await given.task(workbench, by=ada)
    assert await given.kinds(workbench, "task.*") == ["task.created"]


@pytest.mark.parametrize("name", ["revoke_agent", "delete_agent"])
async def test_a_task_reserved_for_a_departed_agent_is_open_to_all(
    workbench: Workbench, ada: Admitted, bob: Admitted, name: str
) -> None:
    waits, held = [await given.task(workbench, assigned_agent_id="ada") for _ in range(2)]
    assert (await given.claim(workbench, ada, held))["id"] == held
    await workbench.call(name, agent_id="ada", reason="it talks too much")
    told = {"assigned_agent_id": None, "reason": "it talks too much"}
    for task in (waits, held):
        assert ("reassigned", told) in await events(workbench, task)
        claimed = await given.claim(workbench, bob)
        assert (claimed["id"], claimed["reserved_for"]) == (task, None)
        await given.done_by(workbench, bob, "complete_task", task)
    assert (await given.kinds(workbench)).count("task.reassigned") == 2


@pytest.mark.long
async def test_a_task_of_a_closed_worktree_is_retried_once_the_worktree_exists_again(workbench: Workbench) -> None:
    waiting = await given.task(workbench, "early", target_worktree="later")
    task = await given.task(workbench, target_worktree="lab")
    for one in (waiting, task):
        await workbench.call("cancel_task", task_id=one)
    assert (await workbench.call("retry_task", task_id=waiting))["status"] == "pending"
    await given.worktree(workbench)
    await workbench.call("discard_worktree", worktree_name="lab")
    with pytest.raises(Conflict, match="WORKTREE_CLOSED") as refused:
        await workbench.call("retry_task", task_id=task)
    assert (refused.value.details["worktree"], refused.value.details["branch"]) == ("lab", "wb/lab/main")
    assert f"`workbench retry {task} --recreate`" in refused.value.message
    assert (await given.task_now(workbench, task))["status"] == "cancelled"
    await given.worktree(workbench, branch_name=refused.value.details["branch"])
    assert (await workbench.call("retry_task", task_id=task))["status"] == "pending"
