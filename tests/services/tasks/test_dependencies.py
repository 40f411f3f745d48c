"""Dependencies: added and removed during the work, never in a cycle, and the effects of an end."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused

pytestmark = pytest.mark.anyio


async def states(workbench: Workbench, *ids: int) -> list[tuple[str, list[int]]]:
    """The states of tasks and their open dependencies."""
    found = [await workbench.call("get_task_status", task_id=task_id) for task_id in ids]
    return [(task["status"], task["blocked_by"]) for task in found]


async def wait_for(workbench: Workbench, task_id: int, depends_on: int) -> dict[str, Any]:
    """Add a dependency."""
    return await workbench.call("add_dependency", task_id=task_id, depends_on=depends_on)


async def kinds(workbench: Workbench, task_id: int) -> list[str]:
    """The kinds of a task's events."""
    return [kind.removeprefix("task.") for kind in await given.kinds(workbench, subject=f"task:{task_id}")]


# Added and removed


async def test_a_dependency_added_later_keeps_a_task_from_being_claimed(workbench: Workbench, ada: Admitted) -> None:
    first, task, other = [await given.task(workbench) for _ in range(3)]
    found = await wait_for(workbench, task, first)
    assert (found["dependencies"], found["blocked_by"], found["blocked"]) == ([first], [first], True)
    assert await wait_for(workbench, task, first) == found
    with pytest.raises(Conflict, match=f"it waits for {first}"):
        await given.claim(workbench, ada, task)
    await given.end(workbench, ada, first)
    found = await wait_for(workbench, other, first)
    assert (found["dependencies"], found["blocked_by"], found["blocked"]) == ([first], [], False)
    await given.end(workbench, ada, task)
    assert await kinds(workbench, task) == ["created", "dependency_added", "claimed", "started", "completed"]


async def test_a_removed_dependency_makes_a_task_claimable(workbench: Workbench, admit: Admit) -> None:
    first, other = await given.task(workbench), await given.task(workbench)
    task = await given.task(workbench, dependencies=[first, other])
    found = await workbench.call("remove_dependency", task_id=task, depends_on=first)
    assert (found["dependencies"], found["blocked_by"]) == ([other], [other])
    found = await workbench.call("remove_dependency", task_id=task, depends_on=other)
    assert (found["dependencies"], found["blocked"]) == ([], False)
    with pytest.raises(Conflict, match="NO_DEPENDENCY"):
        await workbench.call("remove_dependency", task_id=task, depends_on=other)
    assert await kinds(workbench, task) == ["created", "dependency_removed", "dependency_removed"]
    assert (await wait_for(workbench, first, task))["blocked_by"] == [task]
    await given.end(workbench, await admit("ada"), task)


async def test_a_held_task_cannot_complete_before_a_dependency_added_meanwhile(
    workbench: Workbench, ada: Admitted
) -> None:
    task, later = await given.task(workbench), await given.task(workbench)
    await given.claim(workbench, ada, task)
    await wait_for(workbench, task, later)
    assert await states(workbench, task) == [("claimed", [later])]
    before = await given.task_now(workbench, task)
    with pytest.raises(Conflict, match="DEPENDENCIES_OPEN") as refused:
        await workbench.dispatch(ada.caller, "complete_task", {"task_id": task})
    assert refused.value.details == {"blocked_by": [later]}
    assert await given.task_now(workbench, task) == before
    await workbench.dispatch(ada.caller, "release_task", {"task_id": task})
    assert (await workbench.dispatch(ada.caller, "claim_task", {}))["task"]["id"] == later
    await workbench.dispatch(ada.caller, "complete_task", {"task_id": later})
    await given.end(workbench, ada, task)


@pytest.mark.parametrize("name", ["add_dependency", "remove_dependency"])
async def test_dependencies_are_between_tasks_that_are_there(workbench: Workbench, name: str) -> None:
    task = await given.task(workbench)
    for task_id, depends_on in ((task, 99), (99, task)):
        expected = "NO_DEPENDENCY" if (name, task_id) == ("remove_dependency", task) else "TASK_NOT_FOUND"
        with pytest.raises((NotFound, Conflict), match=f"^{expected}"):
            await workbench.call(name, task_id=task_id, depends_on=depends_on)
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call(name, task_id=task, depends_on="all")


async def test_a_worker_changes_what_it_holds_and_what_lies_under_that_and_nothing_else(
    workbench: Workbench, ada: Admitted
) -> None:
    root, other = await given.task(workbench), await given.task(workbench)
    child = await given.task(workbench, parent_task_id=root)
    grandchild = await given.task(workbench, parent_task_id=child)
    edge = {"task_id": grandchild, "depends_on": other}
    for name in ("add_dependency", "remove_dependency"):
        with pytest.raises(Refused, match="FORBIDDEN"):
            await workbench.dispatch(ada.caller, name, edge)
    await given.claim(workbench, ada, root)
    assert (await workbench.dispatch(ada.caller, "add_dependency", edge))["blocked_by"] == [other]
    assert (await workbench.dispatch(ada.caller, "remove_dependency", edge))["blocked_by"] == []
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "add_dependency", {"task_id": other, "depends_on": root})
    gate = {"task_id": root, "depends_on": other}
    await workbench.call("add_dependency", **gate)
    with pytest.raises(Refused, match="FORBIDDEN: You hold task"):
        await workbench.dispatch(ada.caller, "remove_dependency", gate)
    await workbench.call("remove_dependency", **gate)
    await workbench.dispatch(ada.caller, "release_task", {"task_id": root})
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada.caller, "add_dependency", edge)


# Never in a circle


@pytest.mark.parametrize("length", [1, 2, 3, 60])
async def test_tasks_that_would_wait_for_each_other_are_refused_with_the_whole_circle(
    workbench: Workbench, length: int
) -> None:
    new = [{"title": "t", "persona_id": "implementer", "dependencies": [-n] if n else []} for n in range(length)]
    ids = (await workbench.call("create_tasks", tasks=new))["task_ids"]
    before = (await workbench.call("list_tasks", limit=100))["tasks"]
    with pytest.raises(Conflict, match="DEPENDENCY_CYCLE") as refused:
        await wait_for(workbench, ids[0], ids[-1])
    assert refused.value.details["path"] == [ids[0], *reversed(ids)]
    if length == 60:
        assert refused.value.message.endswith(": 1 → 60 → 59 → 58 → 57 → 56 → … → 6 → 5 → 4 → 3 → 2 → 1.")
    assert (await workbench.call("list_tasks", limit=100))["tasks"] == before


async def test_the_shortest_dependency_cycle_is_named(workbench: Workbench) -> None:
    a, b, c, d = [await given.task(workbench, title) for title in "abcd"]
    for task, first in ((a, b), (b, c), (c, d), (a, c)):
        await wait_for(workbench, task, first)
    with pytest.raises(Conflict, match="DEPENDENCY_CYCLE") as refused:
        await wait_for(workbench, d, a)
    assert refused.value.details["path"] == [d, a, c, d]
    assert refused.value.message == f"The tasks would wait for each other: {d} → {a} → {c} → {d}."


# What an end means for others


@pytest.mark.parametrize("bad", ["failed", "cancelled"])
async def test_the_failure_policy_blocks_cancels_or_frees_a_dependent_task(
    workbench: Workbench, ada: Admitted, bad: str
) -> None:
    first, policies = await given.task(workbench), ("block", "ignore", "cancel")
    tasks = [await given.whole_task(workbench, dependencies=[first], on_failure=how) for how in policies]
    assert tuple(task["on_failure"] for task in tasks) == policies
    stays, goes, over = [task["id"] for task in tasks]
    await given.end(workbench, ada, first, bad)
    assert await states(workbench, stays, goes, over) == [("pending", [first]), ("pending", []), ("cancelled", [])]
    assert await kinds(workbench, stays) == ["created", "blocked"]
    assert await kinds(workbench, goes) == ["created"]
    assert await kinds(workbench, over) == ["created", "cancelled"]
    reason = f"task {first}, which it depends on, did not succeed"
    assert (await given.task_now(workbench, over))["error_message"] == reason
    later = [await given.task(workbench, dependencies=[first], on_failure=how) for how in policies[:2]]
    assert await states(workbench, *later) == [("pending", [first]), ("pending", [])]
    await given.end(workbench, ada, goes)
    await workbench.call("retry_task", task_id=first)
    assert await states(workbench, first, stays, *later) == [("pending", []), *[("pending", [first])] * 3]
    await given.end(workbench, ada, first)
    await given.end(workbench, ada, stays)


async def test_a_cancelled_task_cancels_its_subtasks_and_its_cancelling_dependants(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    first = await given.task(workbench)
    second = await given.task(workbench, "second", on_failure="cancel")
    under = await given.task(workbench, "under", parent_task_id=second)
    third = await given.task(workbench, "third", dependencies=[under, second], on_failure="cancel")
    fourth = await given.task(workbench, "fourth", dependencies=[third, second], on_failure="ignore")
    fifth = await given.task(workbench, "fifth", dependencies=[third])
    await given.claim(workbench, bob, under)
    await wait_for(workbench, second, first)
    await given.end(workbench, ada, first, "failed")
    assert await states(workbench, second, under, third, fourth, fifth) == [
        *(("cancelled", []), ("cancelled", []), ("cancelled", []), ("pending", []), ("pending", [third])),
    ]
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await given.done_by(workbench, bob, "complete_task", under)
    assert [(await kinds(workbench, task)).count("cancelled") for task in (second, under, third)] == [1, 1, 1]
    (attempt,) = (await given.task_now(workbench, under))["attempts"]
    assert (attempt["outcome"], attempt["agent_id"]) == ("cancelled", "bob")


@pytest.mark.parametrize("policy", ["block", "cancel", "ignore"])
async def test_an_ended_task_is_not_affected_by_a_failed_dependency(
    workbench: Workbench, ada: Admitted, policy: str
) -> None:
    first = await given.task(workbench)
    task = await given.task(workbench, dependencies=[first], on_failure=policy)
    await given.end(workbench, ada, task, "cancelled")
    under = await given.task(workbench, parent_task_id=task)
    before = await given.task_now(workbench, task)
    assert before["blocked_by"] == []
    await given.end(workbench, ada, first, "failed")
    assert await given.task_now(workbench, task) == before
    assert await kinds(workbench, task) == ["created", "cancelled"]
    assert await states(workbench, under) == [("pending", [])]


async def test_a_started_task_waits_for_a_dependency_that_is_revived(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    first = await given.task(workbench)
    task = await given.task(workbench, dependencies=[first], on_failure="ignore")
    await given.end(workbench, ada, first, "failed")
    await given.claim(workbench, bob, task)
    await workbench.call("retry_task", task_id=first)
    with pytest.raises(Conflict, match="DEPENDENCIES_OPEN"):
        await workbench.dispatch(bob.caller, "complete_task", {"task_id": task})
    await given.end(workbench, ada, first, "failed")
    await workbench.dispatch(bob.caller, "complete_task", {"task_id": task})


async def test_a_task_cancelled_with_its_dependencies_cannot_get_a_dead_one(workbench: Workbench, admit: Admit) -> None:
    ada, failed, gone, whole = (
        await admit("ada"),
        await given.task(workbench),
        await given.task(workbench),
        await given.task(workbench),
    )
    task = await given.task(workbench, on_failure="cancel")
    await given.end(workbench, ada, failed, "failed")
    await given.end(workbench, ada, gone, "cancelled")
    new = {"title": "t", "persona_id": "implementer", "on_failure": "cancel", "dependencies": [failed, whole, gone]}
    part = {"title": "t", "on_failure": "cancel", "parent_task_id": task, "dependencies": [failed, gone]}
    last = (await workbench.call("list_events", after=None))["next_after"]
    for name, arguments, dead in (
        ("create_task", new, [failed, gone]),
        ("create_tasks", {"tasks": [{"title": "t", "persona_id": "implementer"}, new]}, [failed, gone]),
        ("create_subtask", part, [failed, gone]),
        ("add_dependency", {"task_id": task, "depends_on": gone}, [gone]),
    ):
        with pytest.raises(Conflict, match=r"^DEPENDENCY_DEAD") as refused:
            await workbench.call(name, **arguments)
        assert refused.value.details == {"dead": dead}
        assert f"{gone} (cancelled)" in refused.value.message
        assert "Retry them first" in refused.value.message
    assert (await workbench.call("list_events", after=last))["events"] == []
    assert (await given.task_now(workbench, task))["dependencies"] == []
    await workbench.call("retry_task", task_id=gone)
    assert (await wait_for(workbench, task, gone))["blocked_by"] == [gone]
    await given.end(workbench, ada, gone, "cancelled")
    assert await states(workbench, task) == [("cancelled", [])]


async def test_a_message_names_only_some_of_many_dead_dependencies(workbench: Workbench) -> None:
    ids = [await given.task(workbench) for _ in range(15)]
    for task in ids:
        await workbench.call("cancel_task", task_id=task)
    with pytest.raises(Conflict, match=r"12 \(cancelled\) and 3 more\.") as refused:
        await given.task(workbench, dependencies=ids, on_failure="cancel")
    assert refused.value.details == {"dead": ids}


async def test_a_task_cancelled_with_its_dependency_is_retried_after_it(workbench: Workbench, ada: Admitted) -> None:
    first = await given.task(workbench)
    task = await given.task(workbench, dependencies=[first], on_failure="cancel")
    await given.end(workbench, ada, first, "failed")
    before = await given.task_now(workbench, task)
    with pytest.raises(Conflict, match=rf"DEPENDENCY_DEAD.*{first} \(failed\)"):
        await workbench.call("retry_task", task_id=task)
    assert await given.task_now(workbench, task) == before
    await workbench.call("retry_task", task_id=first)
    await workbench.call("retry_task", task_id=task)
    assert await states(workbench, first, task) == [("pending", []), ("pending", [first])]
    await given.end(workbench, ada, first)
    await given.end(workbench, ada, task)
