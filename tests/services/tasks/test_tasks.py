"""Tasks: created, listed, shown as a tree, cancelled."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests import given
from tests.conftest import Admit, Admitted, followed
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound
from workbench.state.settings import Settings
from workbench.store.base import Reader

pytestmark = pytest.mark.anyio


async def events(workbench: Workbench, *kinds: str) -> list[dict[str, Any]]:
    """Events so far."""
    found: list[dict[str, Any]] = (await workbench.call("list_events", kinds=list(kinds), limit=1000))["events"]
    return found


async def pages(workbench: Workbench, **how: Any) -> AsyncIterator[list[dict[str, Any]]]:
    """A list of tasks, page by page."""
    page = await workbench.call("list_tasks", **how)
    yield page["tasks"]
    while page["next_cursor"] is not None:
        page = await workbench.call("list_tasks", **how, cursor=page["next_cursor"])
        yield page["tasks"]


ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "id": lambda task: task["id"],
    "newest": lambda task: -task["id"],
    "priority": lambda task: (-task["priority"], task["id"]),
}


async def test_a_task_keeps_its_given_fields_and_takes_the_rest_from_the_settings(
    workbench: Workbench, admit: Admit, settings: Settings
) -> None:
    said = {
        **{"title": "é" * 200, "description": "é" * 100_000, "priority": -3, "run": ["echo", "é"], "max_retries": 0},
        **{"context_ref": "doc:1", "metadata": {"a": [1, None, "ü"], "x": "y" * 1_048_500}},
    }
    more = {"persona_id": "Tester", "target_worktree": "lab", "lease_seconds": 1.5}
    task = await given.whole_task(workbench, by=await admit("paula", role="planner"), **said, **more)
    assert {key: task[key] for key in said} == said
    assert (task["persona_id"], task["worktree"], task["created_by"]) == ("tester", "lab", "paula")
    assert (task["status"], task["attempt"], task["progress"], task["blocked"]) == ("pending", 0, 0, False)
    assert (task["result_data"], task["artifacts"], task["attempts"], task["blocked_by"]) == (None, [], [], [])
    assert await given.task_now(workbench, task["id"]) | {"note": None, "warnings": []} == task
    (event,) = await events(workbench, "task.*")
    assert (event["kind"], event["actor"], event["subject"]) == ("task.created", "paula", f"task:{task['id']}")
    assert event["data"] == {"title": said["title"], "persona_id": "tester", "ready": True}
    plain = await given.whole_task(workbench)
    assert (plain["max_retries"], plain["priority"], plain["description"]) == (settings.max_retries, 500, "")


NO_TASKS: list[tuple[dict[str, Any], str]] = [
    ({"persona_id": "wizard"}, "PERSONA_NOT_FOUND"),
    ({"dependencies": [99]}, "TASK_NOT_FOUND"),
    ({"parent_task_id": 99}, "TASK_NOT_FOUND"),
    ({"assigned_agent_id": "nobody"}, "AGENT_NOT_FOUND"),
    ({"target_worktree": "../x"}, "BAD_WORKTREE_NAME"),
    ({"target_worktree": "main"}, "BAD_WORKTREE_NAME"),
    ({"title": ""}, "INVALID_ARGUMENTS"),
    ({"title": "x" * 201}, "INVALID_ARGUMENTS"),
    ({"description": "x" * 100_001}, "INVALID_ARGUMENTS"),
    ({"priority": 1_000_001}, "INVALID_ARGUMENTS"),
    ({"max_retries": -1}, "INVALID_ARGUMENTS"),
    ({"lease_seconds": 0}, "INVALID_ARGUMENTS"),
    ({"lease_seconds": 86_401}, "INVALID_ARGUMENTS"),
    ({"lease_seconds": float("nan")}, "INVALID_ARGUMENTS"),
    ({"dependencies": [1] * 1_001}, "INVALID_ARGUMENTS"),
    ({"run": {"sh": "x"}}, "INVALID_ARGUMENTS"),
    ({"metadata": {"x": "y" * 1_048_576}}, "TOO_LARGE"),
    ({"owner": "me"}, "INVALID_ARGUMENTS"),
]


async def test_an_invalid_task_is_refused_and_leaves_nothing(workbench: Workbench) -> None:
    for more, code in NO_TASKS:
        with pytest.raises((BadInput, NotFound), match=f"^{code}"):
            await workbench.call("create_task", **{"title": "t", "persona_id": "implementer"} | more)
        assert (await workbench.call("list_tasks"))["tasks"] == [], more
    assert await events(workbench, "task.*") == []


async def test_a_task_waits_until_all_it_depends_on_is_completed(workbench: Workbench, ada: Admitted) -> None:
    done, failed, open_one, one, two = [await given.task(workbench, title) for title in "abcde"]
    await given.end(workbench, ada, done)
    await given.end(workbench, ada, failed, "failed")
    last = await given.whole_task(workbench, dependencies=[done, failed, open_one, done])
    assert (last["blocked"], last["dependencies"]) == (True, [done, failed, open_one])
    assert last["blocked_by"] == [failed, open_one]
    assert (await events(workbench, "task.created"))[-1]["data"]["ready"] is False
    with pytest.raises(Conflict, match=rf"it depends on {failed} \(failed\).* it waits for {open_one}\.") as refused:
        await given.claim(workbench, ada, last["id"])
    reasons = ["dependency_failed", "dependency"]
    assert refused.value.details == {"status": "pending", "reasons": reasons, "blocked_by": [failed, open_one]}
    next_one = await given.whole_task(workbench, dependencies=[done, one, two], priority=900)
    assert next_one["blocked_by"] == [one, two]
    await given.end(workbench, ada, one)
    assert (await given.task_now(workbench, next_one["id"]))["blocked_by"] == [two]
    await given.end(workbench, ada, two)
    assert (await given.task_now(workbench, next_one["id"]))["blocked"] is False
    assert (await given.claim(workbench, ada))["id"] == next_one["id"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@hypothesis.given(data=st.data())
async def test_the_pages_of_any_list_add_up_to_the_list(workbench: Workbench, data: st.DataObject) -> None:
    if not (await workbench.call("list_tasks"))["tasks"]:
        kinds = [(p, persona) for p in (0, 5, 5, -7, 2**20 - 50_000) for persona in ("tester", "implementer")]
        await workbench.call("create_tasks", tasks=[{"title": "t", "priority": p, "persona_id": q} for p, q in kinds])
    sort = data.draw(st.sampled_from(["id", "newest", "priority"]))
    wanted = data.draw(st.sampled_from([{}, {"persona_id": "Tester"}, {"status": "pending"}, {"search": "x"}]))
    whole = (await workbench.call("list_tasks", sort=sort, **wanted))["tasks"]
    size = data.draw(st.integers(1, 12))
    found = [page async for page in pages(workbench, limit=size, sort=sort, **wanted)]
    assert [task for page in found for task in page] == whole == sorted(whole, key=ORDERS[sort])
    assert len(found) == max(1, math.ceil(len(whole) / size)), "the last page is never an empty one"
    assert len(whole) == {"persona_id": 5, "search": 0}.get(next(iter(wanted), ""), 10)


async def test_a_page_continues_after_the_last_row_of_the_page_before(workbench: Workbench) -> None:
    ids = [await given.task(workbench, priority=p) for p in (5, 4, 3, 2)]
    found = []
    async for page in pages(workbench, limit=2, sort="priority"):
        found += [task["id"] for task in page]
        await given.task(workbench, "more urgent than what was shown", priority=9)
    assert found == ids


async def test_a_cursor_of_no_list_or_of_another_is_refused(workbench: Workbench) -> None:
    await workbench.call("create_tasks", tasks=[{"title": "t", "persona_id": "tester"}] * 2)
    by_id = (await workbench.call("list_tasks", limit=1))["next_cursor"]
    for cursor, sort in (("1", "id"), ("0", "id"), ("x" * 300, "id"), ("é", "id"), (by_id, "priority")):
        with pytest.raises(BadInput, match="BAD_CURSOR"):
            await workbench.call("list_tasks", cursor=cursor, sort=sort)


async def test_lists_are_filtered_by_every_field_they_offer(workbench: Workbench, ada: Admitted) -> None:
    text = "plan: p\ntasks:\n- {name: a, title: planned, persona: tester, worktree: lab}\n"
    planned = (await workbench.call("create_plan", text=text))["tasks"]["a"]
    done, open_one = await given.task(workbench), await given.task(workbench, target_worktree="lab")
    await given.end(workbench, ada, done)
    child = await given.task(workbench, parent_task_id=planned)
    waits = await given.task(workbench, dependencies=[planned, done])
    wanted: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [planned, done, open_one, child, waits]),
        ({"status": "completed"}, [done]),
        ({"persona_id": "tester"}, [planned]),
        ({"worktree": "lab"}, [planned, open_one]),
        ({"plan": "p"}, [planned]),
        ({"plan": "p", "status": "completed"}, []),
        ({"assigned_agent_id": "ada"}, [done]),
        ({"parent_task_id": planned}, [child]),
        ({"sort": "newest"}, [waits, child, open_one, done, planned]),
        ({"status": "blocked"}, [waits]),
        ({"status": "pending"}, [planned, open_one, child, waits]),
    ]
    for how, ids in wanted:
        assert [task["id"] for task in (await workbench.call("list_tasks", **how))["tasks"]] == ids, how
    with pytest.raises(BadInput, match="status: must be pending, blocked, "):
        await workbench.call("list_tasks", status="open")


async def test_create_tasks_creates_all_tasks_or_none(workbench: Workbench) -> None:
    new = [{"title": f"t{n}", "persona_id": "implementer", "dependencies": [-n] if n else []} for n in range(300)]
    ids = (await workbench.call("create_tasks", tasks=new))["task_ids"]
    assert ids == list(range(ids[0], ids[0] + 300))
    edges = (await workbench.call("get_task_graph"))["dependencies"]
    assert edges == [[task, task - 1] for task in ids[1:]]
    old = {"title": "also", "persona_id": "implementer", "dependencies": [ids[7], -1]}
    (one, two) = (await workbench.call("create_tasks", tasks=[new[0], old]))["task_ids"]
    assert (await given.task_now(workbench, two))["dependencies"] == [ids[7], one]
    before = await events(workbench, "task.*")
    for bad, code in (
        ({"dependencies": [-2]}, "BAD_DEPENDENCY"),
        ({"dependencies": [0]}, "BAD_DEPENDENCY"),
        ({"dependencies": [-1, 9_999]}, "TASK_NOT_FOUND"),
        ({"persona_id": "wizard"}, "PERSONA_NOT_FOUND"),
        ({"title": ""}, "INVALID_ARGUMENTS"),
    ):
        with pytest.raises((BadInput, NotFound), match=f"^{code}"):
            await workbench.call("create_tasks", tasks=[new[0], new[0] | bad])
    with pytest.raises(BadInput, match="INVALID_ARGUMENTS"):
        await workbench.call("create_tasks", tasks=[])
    assert await events(workbench, "task.*") == before


async def test_get_task_status_gives_the_state_of_a_task_in_brief(workbench: Workbench, ada: Admitted) -> None:
    first = await given.task(workbench)
    task = await given.task(workbench, dependencies=[first])

    async def status() -> dict[str, Any]:
        return await workbench.call("get_task_status", task_id=task)

    assert await status() == {
        **{"id": task, "status": "pending", "progress": 0, "attempt": 0, "assigned_agent_id": None},
        **{"lease_expires_at": None, "blocked_by": [first], "error_message": None},
    }
    await given.end(workbench, ada, first)
    await given.claim(workbench, ada)
    held = await status()
    assert (held["status"], held["attempt"], held["assigned_agent_id"], held["blocked_by"]) == ("claimed", 1, "ada", [])
    assert held["lease_expires_at"] == (await given.task_now(workbench, task))["lease_expires_at"]
    await given.end(workbench, ada, task, "failed")
    failed = await status()
    assert (failed["status"], failed["error_message"], failed["lease_expires_at"]) == ("failed", "no", None)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_wait_for_task_returns_when_the_task_ends(
    workbench: Workbench, ada: Admitted, admit: Admit, end: str
) -> None:
    eve, task, other = await admit("eve", tool="read"), await given.task(workbench), await given.task(workbench)
    waiting = asyncio.create_task(given.done_by(workbench, eve, "wait_for_task", task, wait_seconds=30))
    await followed(workbench)
    await given.end(workbench, ada, other)
    await given.claim(workbench, ada, task)
    assert not waiting.done()
    await given.end(workbench, ada, task, end)
    assert await waiting == await workbench.call("get_task_status", task_id=task)
    assert (await waiting)["status"] == end


@pytest.mark.timeout(20)
async def test_wait_for_task_returns_at_the_first_change(workbench: Workbench, ada: Admitted) -> None:
    task, other = await given.task(workbench), await given.task(workbench)
    wait = {"until": "changed", "wait_seconds": 30}
    waiting = asyncio.create_task(given.done_by(workbench, ada, "wait_for_task", task, **wait))
    await followed(workbench)
    await workbench.call("set_priority", task_id=other, priority=1)
    await given.claim(workbench, ada, task)
    assert (await waiting)["status"] == "claimed"


@pytest.mark.timeout(20)
async def test_wait_for_task_sees_a_change_before_its_first_read(
    workbench: Workbench, ada: Admitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, read, may_read = await given.task(workbench), workbench.store.read, asyncio.Event()

    async def late(question: Callable[[Reader], Any]) -> Any:
        await may_read.wait()
        return await read(question)

    with monkeypatch.context() as patched:
        patched.setattr(workbench.store, "read", late)
        wait = {"until": "changed", "wait_seconds": 30}
        waiting = asyncio.create_task(given.done_by(workbench, ada, "wait_for_task", task, **wait))
        await followed(workbench)
    await given.claim(workbench, ada, task)
    may_read.set()
    assert (await waiting)["status"] == "claimed"


async def test_wait_for_task_times_out_and_returns_at_once_for_an_ended_task(
    workbench: Workbench, ada: Admitted
) -> None:
    task = await given.task(workbench)
    assert (await workbench.call("wait_for_task", task_id=task, wait_seconds=0.05))["status"] == "pending"
    await given.end(workbench, ada, task)
    for until in ("ended", "changed"):
        found = await workbench.call("wait_for_task", task_id=task, until=until, wait_seconds=3_600)
        assert found["status"] == "completed"


async def test_the_graph_has_the_dependencies_and_the_parents_of_tasks(workbench: Workbench) -> None:
    line = "- {name: a, title: a, persona: tester}\n"
    text = f"plan: p\ntasks:\n{line}{line.replace('a,', 'b,').replace('}', ', after: [a]}')}"
    planned = (await workbench.call("create_plan", text=text))["tasks"]
    one = await given.task(workbench)
    two = await given.task(workbench, parent_task_id=one, dependencies=[planned["b"], one])
    graph = await workbench.call("get_task_graph")
    edges = [[planned["b"], planned["a"]], [two, one], [two, planned["b"]]]
    assert graph == {"dependencies": sorted(edges), "parents": [[two, one]]}
    assert await workbench.call("get_task_graph", plan="p") == {"dependencies": edges[:1], "parents": []}


async def test_a_subtree_rolls_its_counts_up(workbench: Workbench, ada: Admitted) -> None:
    assert await workbench.call("count_tasks") == {"counts": {}, "blocked": 0, "stuck": 0}
    root = await given.task(workbench, "root")
    left, right = [await given.task(workbench, title, parent_task_id=root) for title in ("left", "right")]
    leaf = await given.task(workbench, "leaf", "tester", parent_task_id=right, dependencies=[left])
    other = await given.task(workbench, "other")
    await given.end(workbench, ada, left)
    await given.end(workbench, ada, other, "failed")
    await given.end(workbench, ada, await given.task(workbench, "third"), "cancelled")
    tree = await workbench.call("get_task_tree")

    def shape(node: dict[str, Any]) -> Any:
        return (node["title"], node["open_below"], node["completed_below"], [shape(c) for c in node["children"]])

    leaf_shape = ("leaf", 0, 0, [])
    assert [shape(node) for node in tree["tasks"]] == [
        ("root", 2, 1, [("left", 0, 0, []), ("right", 1, 0, [leaf_shape])]),
        ("other", 0, 0, []),
        ("third", 0, 0, []),
    ]
    assert tree["counts"] == {"pending": 3, "completed": 1, "failed": 1, "cancelled": 1}
    assert (await workbench.call("count_tasks"))["counts"] == tree["counts"]
    child = tree["tasks"][0]["children"][1]["children"][0]
    assert (child["id"], child["dependencies"], child["parent_task_id"]) == (leaf, [left], right)


async def test_a_filtered_tree_keeps_what_leads_to_a_match(workbench: Workbench, ada: Admitted) -> None:
    root = await given.task(workbench, "root")
    left = await given.task(workbench, "left", parent_task_id=root)
    await given.task(workbench, "leaf", "tester", parent_task_id=left)
    await given.task(workbench, "right", parent_task_id=root)
    await given.end(workbench, ada, await given.task(workbench, "done"))

    def shape(node: dict[str, Any]) -> Any:
        return {node["title"]: [shape(child) for child in node["children"]]}

    tester, implementers = [{"root": [{"left": [{"leaf": []}]}]}], [{"root": [{"left": []}, {"right": []}]}]
    wanted: list[tuple[dict[str, str], Any]] = [
        ({"filter_persona": "tester"}, tester),
        ({"filter_persona": "TESTER"}, tester),
        ({"filter_status": "completed"}, [{"done": []}]),
        ({"filter_status": "completed", "filter_persona": "tester"}, []),
        ({"filter_status": "pending", "filter_persona": "implementer"}, implementers),
    ]
    for how, expected in wanted:
        assert [shape(node) for node in (await workbench.call("get_task_tree", **how))["tasks"]] == expected, how


async def test_a_tree_may_be_deep_but_never_too_deep_to_be_shown(workbench: Workbench) -> None:
    parent = None
    for depth in range(50):
        parent = await given.task(workbench, f"d{depth}", parent_task_id=parent)
    with pytest.raises(BadInput, match="TOO_DEEP"):
        await given.task(workbench, "d50", parent_task_id=parent)
    (node,) = (await workbench.call("get_task_tree"))["tasks"]
    assert node["open_below"] == 49
    assert (await workbench.call("cancel_task", task_id=node["id"]))["status"] == "cancelled"
    assert (await workbench.call("get_task_tree"))["counts"] == {"cancelled": 50}


async def test_cancelling_a_task_cancels_its_subtree_except_completed_tasks(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    root = await given.task(workbench, "root")
    done, held = [await given.task(workbench, title, parent_task_id=root) for title in ("done", "held")]
    leaf = await given.task(workbench, "leaf", parent_task_id=done)
    outside = await given.task(workbench, "outside", dependencies=[leaf])
    await given.end(workbench, ada, done)
    await given.claim(workbench, bob, held)
    cancelled = await workbench.call("cancel_task", task_id=root, reason="Other plans.")
    assert (cancelled["status"], cancelled["error_message"]) == ("cancelled", "Other plans.")
    states = {t["title"]: t["status"] for t in (await workbench.call("list_tasks"))["tasks"]}
    assert states == {
        **{"root": "cancelled", "done": "completed", "held": "cancelled", "leaf": "cancelled", "outside": "pending"},
    }
    (attempt,) = (await given.task_now(workbench, held))["attempts"]
    assert (attempt["agent_id"], attempt["outcome"], attempt["error_message"]) == ("bob", "cancelled", "Other plans.")
    (attempt,) = (await given.task_now(workbench, done))["attempts"]
    assert attempt["outcome"] == "completed"
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await given.done_by(workbench, bob, "complete_task", held)
    assert (await workbench.dispatch(bob.caller, "heartbeat_and_get_tasks", {}))["holding"] == []
    assert (await given.task_now(workbench, outside))["blocked_by"] == [leaf]
    subjects = [event["subject"] for event in await events(workbench, "task.cancelled")]
    assert subjects == [f"task:{task}" for task in (root, held, leaf)]


ENDED: list[tuple[str, dict[str, Any]]] = [
    ("cancel_task", {}),
    ("reassign_task", {"assigned_agent_id": None}),
    ("set_priority", {"priority": 9}),
    ("add_dependency", {"depends_on": 1}),
    ("remove_dependency", {"depends_on": 1}),
    ("create_subtask", {"title": "A part", "blocks_parent": True}),
    ("retry_task", {}),
]
"""What cannot be done to a task that has ended; the last one only to what is completed."""


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_an_ended_task_cannot_be_changed(workbench: Workbench, ada: Admitted, end: str) -> None:
    await given.task(workbench, "another")
    task = await given.task(workbench)
    await given.end(workbench, ada, task, end)
    before = await given.task_now(workbench, task)
    for name, more in ENDED if end == "completed" else ENDED[:-1]:
        about = "parent_task_id" if name == "create_subtask" else "task_id"
        with pytest.raises(Conflict, match=f"WRONG_STATE.*{end}"):
            await workbench.call(name, **{about: task}, **more)
    assert await given.task_now(workbench, task) == before
