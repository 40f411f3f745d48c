"""Changing one's mind about tasks: broken down, tried again, given to somebody else, put forward and back."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused, WorkbenchError

pytestmark = pytest.mark.anyio


async def claim(workbench: Workbench, agent: Admitted, **which: int) -> Any:
    """Claim a task; its id or None."""
    task = (await workbench.dispatch(agent.caller, "claim_task", which))["task"]
    return task and task["id"]


async def fail(workbench: Workbench, agent: Admitted, task_id: int, **more: Any) -> dict[str, Any]:
    """Claim a task and fail it, for good unless said otherwise."""
    await claim(workbench, agent, task_id=task_id)
    return await given.done_by(
        workbench, agent, "fail_task", task_id, **{"error_message": "no", "retryable": False} | more
    )


async def rested(workbench: Workbench, task_id: int) -> None:
    """Return once the pause before another attempt is over."""
    async with workbench.feed.subscribe("task.retry_ready") as heard:
        while (await given.task_now(workbench, task_id))["not_before"] is not None:
            await anext(heard)


async def events(workbench: Workbench, task_id: int) -> list[tuple[str, dict[str, Any]]]:
    """What happened to a task after it was created, and what was told of it."""
    found = (await workbench.call("list_events", subject=f"task:{task_id}", limit=1000))["events"]
    return [(event["kind"].removeprefix("task."), event["data"]) for event in found[1:]]


# Broken down


async def test_who_holds_a_task_breaks_it_down_into_others_like_it(workbench: Workbench, ada: Admitted) -> None:
    parent = await given.task(workbench, priority=7)
    await claim(workbench, ada)
    made = await workbench.dispatch(ada.caller, "create_subtask", {"parent_task_id": parent, "title": "A part"})
    assert (made["parent_task_id"], made["persona_id"], made["priority"]) == (parent, "implementer", 7)
    assert (made["created_by"], made["status"], made["blocked"]) == ("ada", "pending", False)
    said = {"persona_id": "tester", "priority": 0, "target_worktree": "lab", "dependencies": [made["id"]]}
    other = await workbench.dispatch(
        ada.caller, "create_subtask", {"parent_task_id": made["id"], "title": "A part of it", **said}
    )
    assert (other["persona_id"], other["priority"], other["worktree"]) == ("tester", 0, "lab")
    assert (other["dependencies"], other["parent_task_id"]) == ([made["id"]], made["id"])
    (node,) = (await workbench.call("get_task_tree"))["tasks"]
    assert (node["open_below"], node["children"][0]["open_below"]) == (2, 1)


async def test_a_task_waits_for_the_parts_it_was_broken_into(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    parent = await given.task(workbench)
    await claim(workbench, ada)
    part = {"parent_task_id": parent, "title": "A part", "blocks_parent": True}
    parts = [(await workbench.dispatch(ada.caller, "create_subtask", part))["id"] for _ in range(2)]
    assert (await given.task_now(workbench, parent))["blocked_by"] == parts
    with pytest.raises(Conflict, match="DEPENDENCIES_OPEN"):
        await given.done_by(workbench, ada, "complete_task", parent)
    released = await given.done_by(workbench, ada, "release_task", parent)
    assert (released["status"], released["blocked"]) == ("pending", True)
    for _ in range(2):
        assert await claim(workbench, bob) in parts
        await given.done_by(workbench, bob, "complete_task", (await claim(workbench, bob)))
    assert await claim(workbench, ada) == parent
    await given.done_by(workbench, ada, "complete_task", parent)
    (node,) = (await workbench.call("get_task_tree"))["tasks"]
    assert (node["status"], node["open_below"], node["completed_below"]) == ("completed", 0, 2)


async def test_a_part_cannot_block_what_it_waits_for(workbench: Workbench, ada: Admitted) -> None:
    parent = await given.task(workbench)
    await claim(workbench, ada)
    part = {"parent_task_id": parent, "title": "A part", "blocks_parent": True, "dependencies": [parent]}
    with pytest.raises(Conflict, match="DEPENDENCY_CYCLE"):
        await workbench.dispatch(ada.caller, "create_subtask", part)
    assert [task["id"] for task in (await workbench.call("list_tasks"))["tasks"]] == [parent]


async def test_only_who_holds_it_a_planner_or_the_person_breaks_a_task_down(
    workbench: Workbench, ada: Admitted, admit: Admit
) -> None:
    pam, parent = await admit("pam", role="planner"), await given.task(workbench)
    part = {"parent_task_id": parent, "title": "A part"}
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "create_subtask", part)
    assert (await workbench.dispatch(pam.caller, "create_subtask", part))["created_by"] == "pam"
    assert (await workbench.call("create_subtask", **part))["created_by"] == "operator"
    await claim(workbench, ada, task_id=parent)
    await given.done_by(workbench, ada, "complete_task", parent)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "create_subtask", part)
    with pytest.raises(Conflict, match="WRONG_STATE"):
        await workbench.call("create_subtask", **part, blocks_parent=True)
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await workbench.dispatch(pam.caller, "create_subtask", part | {"parent_task_id": 99})


# Tried again


@pytest.mark.parametrize("end", ["failed", "cancelled"])
async def test_a_dead_task_is_tried_again_with_all_its_retries_anew(
    workbench: Workbench, ada: Admitted, end: str
) -> None:
    task = await given.task(workbench, max_retries=1)
    await fail(workbench, ada, task, retryable=True)
    await rested(workbench, task)
    if end == "failed":
        await fail(workbench, ada, task, retryable=True)
    else:
        await workbench.call("cancel_task", task_id=task, reason="Not now.")
    (dead,) = (await workbench.call("list_tasks", status=end))["tasks"]
    assert dead["error_message"] == {"failed": "no", "cancelled": "Not now."}[end]
    assert dead["retry_count"] == 1
    again = await workbench.call("retry_task", task_id=task, reason="Now.")
    assert (again["status"], again["retry_count"], again["max_retries"]) == ("pending", 0, 1)
    assert (again["error_message"], again["completed_at"], again["assigned_agent_id"]) == (None, None, None)
    assert (await events(workbench, task))[-1] == ("revived", {"reason": "Now."})
    await fail(workbench, ada, task, retryable=True)
    found = await given.task_now(workbench, task)
    assert (found["status"], found["retry_count"]) == ("pending", 1)
    assert [a["attempt"] for a in found["attempts"]] == ([1, 2, 3] if end == "failed" else [1, 2])


async def test_what_is_tried_again_may_have_other_retries_from_then_on(workbench: Workbench, ada: Admitted) -> None:
    task = await given.task(workbench, max_retries=0)
    for retries, after in ((None, "failed"), (1, "pending")):
        await workbench.call("cancel_task", task_id=task)
        made = await workbench.call("retry_task", task_id=task, max_retries=retries)
        assert made["max_retries"] == (retries or 0)
        assert (await fail(workbench, ada, task, retryable=True))["status"] == after
        if after == "failed":
            await workbench.call("retry_task", task_id=task)
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("retry_task", task_id=task, max_retries=101)


@pytest.mark.parametrize("state", ["pending", "claimed", "completed"])
async def test_only_what_is_dead_is_tried_again(workbench: Workbench, ada: Admitted, state: str) -> None:
    task = await given.task(workbench)
    if state != "pending":
        await claim(workbench, ada)
    if state == "completed":
        await given.done_by(workbench, ada, "complete_task", task)
    before = await given.task_now(workbench, task)
    with pytest.raises(Conflict, match=f"WRONG_STATE.*{state}"):
        await workbench.call("retry_task", task_id=task)
    assert await given.task_now(workbench, task) == before


async def test_errors_of_some_classes_are_never_tried_again(workbench: Workbench, ada: Admitted) -> None:
    never = ["ValueError", "PermissionDenied"]
    one, two, three = [await given.task(workbench, no_retry=never) for _ in range(3)]
    assert (await fail(workbench, ada, one, retryable=True, error_class="json.valueerror"))["status"] == "failed"
    assert (await fail(workbench, ada, two, retryable=True, error_class="OSError"))["status"] == "pending"
    assert (await fail(workbench, ada, three, retryable=True))["status"] == "pending"
    found = await given.task_now(workbench, one)
    assert (found["no_retry"], found["attempts"][0]["error_class"]) == (never, "json.valueerror")
    assert (await events(workbench, one))[-1] == (
        "failed",
        {"attempt": 1, "error": "no", "error_class": "json.valueerror"},
    )


# Given to somebody else


async def test_a_task_is_given_to_one_agent_and_to_anybody_again(
    workbench: Workbench, ada: Admitted, admit: Admit
) -> None:
    rex = await admit("rex", "reviewer")
    task = await given.task(workbench)
    await workbench.call("reassign_task", task_id=task, assigned_agent_id="rex", reason="He knows it.")
    assert await claim(workbench, ada) is None
    with pytest.raises(Conflict, match="TASK_NOT_CLAIMABLE"):
        await claim(workbench, ada, task_id=task)
    await workbench.call("reassign_task", task_id=task, assigned_agent_id=None)
    assert await claim(workbench, rex) is None
    await workbench.call("reassign_task", task_id=task, assigned_agent_id="rex")
    assert await claim(workbench, rex) == task
    assert (await events(workbench, task))[:2] == [
        ("reassigned", {"before": None, "assigned_agent_id": "rex", "reason": "He knows it.", "held": False}),
        ("reassigned", {"before": "rex", "assigned_agent_id": None, "reason": "", "held": False}),
    ]


async def test_who_holds_a_task_that_is_given_to_another_loses_it_and_no_retry(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    task = await given.task(workbench, max_retries=0)
    await claim(workbench, ada)
    with pytest.raises(Conflict, match="ALREADY_THEIRS"):
        await workbench.call("reassign_task", task_id=task, assigned_agent_id="ada")
    await workbench.call("reassign_task", task_id=task, assigned_agent_id="bob", reason="Too slow.")
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await given.done_by(workbench, ada, "complete_task", task)
    assert await claim(workbench, ada) is None
    assert await claim(workbench, bob) == task
    found = await given.task_now(workbench, task)
    assert (found["attempt"], found["retry_count"]) == (2, 0)
    assert [(a["agent_id"], a["outcome"], a["error_message"]) for a in found["attempts"]] == [
        *(("ada", "reassigned", "Too slow."), ("bob", None, None)),
    ]
    assert [kind for kind, _ in await events(workbench, task)] == ["claimed", "released", "reassigned", "claimed"]


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("name", ["reassign_task", "set_priority"])
async def test_what_has_ended_is_neither_given_away_nor_put_forward(
    workbench: Workbench, ada: Admitted, end: str, name: str
) -> None:
    task = await given.task(workbench)
    if end == "cancelled":
        await workbench.call("cancel_task", task_id=task)
    elif end == "failed":
        await fail(workbench, ada, task)
    else:
        await claim(workbench, ada)
        await given.done_by(workbench, ada, "complete_task", task)
    more: dict[str, Any] = {"assigned_agent_id": None} if name == "reassign_task" else {"priority": 9}
    with pytest.raises(Conflict, match=f"WRONG_STATE.*{end}"):
        await workbench.call(name, task_id=task, **more)


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


@pytest.mark.parametrize("name", STEERING)
async def test_planners_and_the_person_steer_and_workers_do_not(
    workbench: Workbench, ada: Admitted, admit: Admit, name: str
) -> None:
    pam = await admit("pam", role="planner")
    new = {"title": "t", "persona_id": "implementer"}
    task = (await workbench.dispatch(pam.caller, "create_task", new))["id"]
    if name == "retry_task":
        await workbench.call("cancel_task", task_id=task)
    with pytest.raises(Refused, match="FORBIDDEN"):
        await given.done_by(workbench, ada, name, task, **STEERING[name])
    assert (await given.done_by(workbench, pam, name, task, **STEERING[name]))["id"] == task
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await given.done_by(workbench, pam, name, 99, **STEERING[name])


@pytest.mark.parametrize("name", ["revoke_agent", "delete_agent"])
async def test_what_was_reserved_for_an_agent_that_is_gone_is_anybodys(
    workbench: Workbench, ada: Admitted, bob: Admitted, name: str
) -> None:
    waits, held = (
        await given.task(workbench, assigned_agent_id="ada"),
        await given.task(workbench, assigned_agent_id="ada"),
    )
    assert (await workbench.dispatch(ada.caller, "claim_task", {"task_id": held}))["task"]["id"] == held
    await workbench.call(name, agent_id="ada", reason="it talks too much")
    told = (await workbench.call("list_events", kinds=["task.reassigned"]))["events"]
    expected = {"assigned_agent_id": None, "reason": "it talks too much"}
    assert {(e["subject"], tuple(e["data"].items())) for e in told} == {
        (f"task:{task}", tuple(expected.items())) for task in (waits, held)
    }
    for task in (waits, held):
        claimed = (await workbench.dispatch(bob.caller, "claim_task", {}))["task"]
        assert (claimed["id"], claimed["reserved_for"]) == (task, None)
        await given.done_by(workbench, bob, "complete_task", task)


async def test_nothing_is_reserved_for_who_was_turned_away(workbench: Workbench, admit: Admit) -> None:
    await admit("ada")
    await workbench.call("revoke_agent", agent_id="ada")
    with pytest.raises(Conflict, match="NOT_ADMITTED: ada was revoked"):
        await given.task(workbench, assigned_agent_id="ada")


async def test_a_task_is_given_only_to_agents_that_are_there(workbench: Workbench) -> None:
    task = await given.task(workbench)
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await workbench.call("reassign_task", task_id=task, assigned_agent_id="ghost")
    with pytest.raises(WorkbenchError, match="INVALID_ARGUMENTS"):
        await workbench.call("reassign_task", task_id=task)


async def test_a_task_whose_worktree_is_closed_is_retried_once_the_worktree_is_made_anew(workbench: Workbench) -> None:
    waiting = await given.task(workbench, "early", target_worktree="later")
    task = await given.task(workbench, target_worktree="lab")
    for one in (waiting, task):
        await workbench.call("cancel_task", task_id=one)
    assert (await workbench.call("retry_task", task_id=waiting))["status"] == "pending"
    await workbench.call("create_worktree", name="lab")
    await workbench.call("discard_worktree", worktree_name="lab")
    with pytest.raises(Conflict, match="WORKTREE_CLOSED") as refused:
        await workbench.call("retry_task", task_id=task)
    assert (refused.value.details["worktree"], refused.value.details["branch"]) == ("lab", "wb/lab/main")
    assert f"`workbench retry {task} --recreate`" in refused.value.message
    assert (await given.task_now(workbench, task))["status"] == "cancelled"
    await workbench.call("create_worktree", name="lab", branch_name=refused.value.details["branch"])
    assert (await workbench.call("retry_task", task_id=task))["status"] == "pending"
