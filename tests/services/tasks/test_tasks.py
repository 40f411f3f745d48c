"""What there is to do: made, listed, shown as a tree, cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests import given
from tests.conftest import Admit, Admitted, followed
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, NotFound, Refused
from workbench.settings import Settings
from workbench.store.base import Reader

pytestmark = pytest.mark.anyio


async def finish(workbench: Workbench, agent: Any, task_id: int, how: str = "complete_task", **more: Any) -> None:
    """Claim a task and end it."""
    await workbench.dispatch(agent.caller, "claim_task", {"task_id": task_id})
    await workbench.dispatch(agent.caller, how, {"task_id": task_id, **more})


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


async def test_a_task_keeps_all_that_was_said_of_it(workbench: Workbench, admit: Admit) -> None:
    planner = await admit("paula", role="planner")
    said = {
        "title": "Clean",
        "description": "All of it.",
        "priority": -3,
        "run": ["echo", "é"],
        "max_retries": 0,
        "context_ref": "doc:1",
        "metadata": {"a": [1, None, "ü"]},
    }
    more = {"persona_id": "Tester", "target_worktree": "lab", "lease_seconds": 1.5}
    made = await workbench.dispatch(planner.caller, "create_task", said | more)
    assert {key: made[key] for key in said} == said
    assert (made["persona_id"], made["worktree"], made["created_by"]) == ("tester", "lab", "paula")
    assert (made["status"], made["attempt"], made["progress"], made["blocked"]) == ("pending", 0, 0, False)
    assert (made["result_data"], made["artifacts"], made["attempts"], made["blocked_by"]) == (None, [], [], [])
    assert await given.task_now(workbench, made["id"]) | {"note": None} == made
    (event,) = await events(workbench, "task.*")
    assert (event["kind"], event["actor"], event["subject"]) == ("task.created", "paula", f"task:{made['id']}")
    assert event["data"] == {"title": "Clean", "persona_id": "tester", "ready": True}


async def test_what_is_not_said_comes_from_the_settings(workbench: Workbench, settings: Settings) -> None:
    made = await given.whole_task(workbench)
    assert (made["max_retries"], made["priority"], made["description"]) == (settings.max_retries, 500, "")


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


async def test_a_task_that_cannot_be_is_refused_and_leaves_nothing(workbench: Workbench) -> None:
    for more, code in NO_TASKS:
        with pytest.raises((BadInput, NotFound), match=f"^{code}"):
            await workbench.call("create_task", **{"title": "t", "persona_id": "implementer"} | more)
        assert (await workbench.call("list_tasks"))["tasks"] == [], more
    assert await events(workbench, "task.*") == []


async def test_the_largest_texts_that_are_allowed_are_kept(workbench: Workbench) -> None:
    large = {"title": "é" * 200, "description": "é" * 100_000, "metadata": {"x": "y" * 1_048_568}}
    made = await given.whole_task(workbench, **large)
    assert {key: made[key] for key in large} == large


async def test_a_task_waits_until_all_it_depends_on_is_completed(workbench: Workbench, ada: Admitted) -> None:
    done, failed, open_one = [await given.whole_task(workbench, title) for title in "abc"]
    await finish(workbench, ada, done["id"])
    await finish(workbench, ada, failed["id"], "fail_task", error_message="no", retryable=False)
    waits = [done["id"], failed["id"], open_one["id"]]
    last = await given.whole_task(workbench, dependencies=[*waits, done["id"]])
    assert (last["blocked"], last["dependencies"], last["blocked_by"]) == (True, waits, waits[1:])
    assert (await events(workbench, "task.created"))[-1]["data"]["ready"] is False
    with pytest.raises(Conflict, match=rf"it depends on {waits[1]} \(failed\).* it waits for {waits[2]}\.") as refused:
        await workbench.dispatch(ada.caller, "claim_task", {"task_id": last["id"]})
    reasons = ["dependency_failed", "dependency"]
    assert refused.value.details == {"status": "pending", "reasons": reasons, "blocked_by": waits[1:]}
    ready = await given.whole_task(workbench, dependencies=[done["id"]])
    assert (ready["blocked"], ready["blocked_by"]) == (False, [])


async def test_completing_the_last_of_several_makes_what_waits_claimable(workbench: Workbench, ada: Admitted) -> None:
    one, two = await given.whole_task(workbench, "one"), await given.whole_task(workbench, "two")
    last = await given.whole_task(workbench, "last", dependencies=[one["id"], two["id"]])
    await finish(workbench, ada, one["id"])
    assert (await given.task_now(workbench, last["id"]))["blocked_by"] == [two["id"]]
    await finish(workbench, ada, two["id"])
    assert (await given.task_now(workbench, last["id"]))["blocked"] is False
    assert (await workbench.dispatch(ada.caller, "claim_task", {}))["task"]["id"] == last["id"]


async def test_only_planners_and_the_person_make_and_cancel_tasks(workbench: Workbench, admit: Admit) -> None:
    worker = await admit("walt")
    made = await given.whole_task(workbench)
    for name, arguments in {
        "create_task": {"title": "t", "persona_id": "tester"},
        "cancel_task": {"task_id": made["id"]},
    }.items():
        with pytest.raises(Refused, match="FORBIDDEN"):
            await workbench.dispatch(worker.caller, name, arguments)
    assert [t["status"] for t in (await workbench.call("list_tasks"))["tasks"]] == ["pending"]


async def test_tasks_are_listed_in_pages_that_neither_skip_nor_repeat(workbench: Workbench) -> None:
    ids = [(await given.whole_task(workbench, f"t{n}"))["id"] for n in range(7)]
    found = [[task["id"] for task in page] async for page in pages(workbench, limit=3)]
    assert found == [ids[:3], ids[3:6], ids[6:]]
    assert (await workbench.call("list_tasks", limit=7))["next_cursor"] is None
    assert (await workbench.call("list_tasks", limit=6))["next_cursor"] is not None


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@hypothesis.given(data=st.data())
async def test_the_pages_of_any_list_are_together_the_list(workbench: Workbench, data: st.DataObject) -> None:
    if not (await workbench.call("list_tasks"))["tasks"]:
        kinds = [(p, persona) for p in (0, 5, 5, -7, 2**20 - 50_000) for persona in ("tester", "implementer")]
        await workbench.call("create_tasks", tasks=[{"title": "t", "priority": p, "persona_id": q} for p, q in kinds])
    sort = data.draw(st.sampled_from(["id", "newest", "priority"]))
    wanted = data.draw(st.sampled_from([{}, {"persona_id": "Tester"}, {"status": "pending"}, {"worktree": "x"}]))
    whole = (await workbench.call("list_tasks", sort=sort, **wanted))["tasks"]
    size = data.draw(st.integers(1, 12))
    together = [task async for page in pages(workbench, limit=size, sort=sort, **wanted) for task in page]
    assert together == whole == sorted(whole, key=ORDERS[sort])
    assert len(whole) == {"persona_id": 5, "worktree": 0}.get(next(iter(wanted), ""), 10)


async def test_a_page_goes_on_where_the_one_before_ended_whatever_came_in_between(workbench: Workbench) -> None:
    ids = [(await given.whole_task(workbench, priority=p))["id"] for p in (5, 4, 3, 2)]
    found = []
    async for page in pages(workbench, limit=2, sort="priority"):
        found += [task["id"] for task in page]
        await given.whole_task(workbench, "more urgent than what was shown", priority=9)
    assert found == ids


@pytest.mark.parametrize("cursor", ["", "1", "0", "x" * 300, "é"])
async def test_a_cursor_of_no_list_or_of_another_is_refused(workbench: Workbench, cursor: str) -> None:
    for _ in range(2):
        await given.whole_task(workbench)
    by_id = (await workbench.call("list_tasks", limit=1))["next_cursor"]
    if cursor:
        with pytest.raises(BadInput, match="BAD_CURSOR"):
            await workbench.call("list_tasks", cursor=cursor)
    with pytest.raises(BadInput, match="BAD_CURSOR"):
        await workbench.call("list_tasks", cursor=by_id, sort="priority")


async def test_lists_are_filtered_by_every_field_they_offer(workbench: Workbench, ada: Admitted) -> None:
    text = "plan: p\ntasks:\n- {name: a, title: planned, persona: tester, worktree: lab}\n"
    planned = (await workbench.call("create_plan", text=text))["tasks"]["a"]
    done, open_one = await given.whole_task(workbench), await given.whole_task(workbench, target_worktree="lab")
    await finish(workbench, ada, done["id"])

    async def found(**how: Any) -> list[int]:
        return [task["id"] for task in (await workbench.call("list_tasks", **how))["tasks"]]

    assert await found() == [planned, done["id"], open_one["id"]]
    assert await found(status="completed") == [done["id"]]
    assert await found(persona_id="tester") == [planned]
    assert await found(worktree="lab") == [planned, open_one["id"]]
    assert await found(plan="p") == [planned]
    assert await found(plan="p", status="completed") == []
    assert await found(assigned_agent_id="ada") == [done["id"]]
    assert await found(assigned_agent_id="nobody") == []
    child = await given.whole_task(workbench, parent_task_id=planned)
    assert await found(parent_task_id=planned) == [child["id"]]
    assert await found(sort="newest") == [child["id"], open_one["id"], done["id"], planned]
    waits = await given.whole_task(workbench, dependencies=[planned, done["id"]])
    assert await found(status="blocked") == [waits["id"]]
    assert await found(status="pending") == [planned, open_one["id"], child["id"], waits["id"]]
    with pytest.raises(BadInput, match="status: must be pending, blocked, "):
        await found(status="open")


async def test_many_tasks_are_made_at_once_or_not_at_all(workbench: Workbench) -> None:
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


async def test_a_task_says_in_few_words_how_it_stands(workbench: Workbench, ada: Admitted) -> None:
    first = await given.whole_task(workbench)
    task = await given.whole_task(workbench, dependencies=[first["id"]])

    async def status(task_id: int) -> dict[str, Any]:
        return await workbench.call("get_task_status", task_id=task_id)

    assert await status(task["id"]) == {
        **{"id": task["id"], "status": "pending", "progress": 0, "attempt": 0, "assigned_agent_id": None},
        **{"lease_expires_at": None, "blocked_by": [first["id"]], "error_message": None},
    }
    await finish(workbench, ada, first["id"])
    await workbench.dispatch(ada.caller, "claim_task", {})
    held = await status(task["id"])
    assert (held["status"], held["attempt"], held["assigned_agent_id"], held["blocked_by"]) == ("claimed", 1, "ada", [])
    assert held["lease_expires_at"] == (await given.task_now(workbench, task["id"]))["lease_expires_at"]
    await workbench.dispatch(ada.caller, "fail_task", {"task_id": task["id"], "error_message": "e", "retryable": False})
    failed = await status(task["id"])
    assert (failed["status"], failed["error_message"], failed["lease_expires_at"]) == ("failed", "e", None)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("end", ["complete_task", "fail_task", "cancel_task"])
async def test_who_waits_for_a_task_hears_of_its_end(
    workbench: Workbench, ada: Admitted, admit: Admit, end: str
) -> None:
    eve = await admit("eve", tool="read")
    task, other = (await given.whole_task(workbench))["id"], (await given.whole_task(workbench))["id"]
    waiting = asyncio.create_task(
        workbench.dispatch(eve.caller, "wait_for_task", {"task_id": task, "wait_seconds": 30})
    )
    await followed(workbench)
    await finish(workbench, ada, other)
    await workbench.dispatch(ada.caller, "claim_task", {"task_id": task})
    assert not waiting.done()
    if end == "cancel_task":
        await workbench.call(end, task_id=task)
    else:
        more = {} if end == "complete_task" else {"error_message": "no", "retryable": False}
        await workbench.dispatch(ada.caller, end, {"task_id": task, **more})
    assert await waiting == await workbench.call("get_task_status", task_id=task)
    assert (await waiting)["status"] in ("completed", "failed", "cancelled")


@pytest.mark.timeout(20)
async def test_who_waits_for_any_change_hears_of_the_first(workbench: Workbench, ada: Admitted) -> None:
    task, other = (await given.whole_task(workbench))["id"], (await given.whole_task(workbench))["id"]
    wait = {"task_id": task, "until": "changed", "wait_seconds": 30}
    waiting = asyncio.create_task(workbench.dispatch(ada.caller, "wait_for_task", wait))
    await followed(workbench)
    await workbench.call("set_priority", task_id=other, priority=1)
    await workbench.dispatch(ada.caller, "claim_task", {"task_id": task})
    assert (await waiting)["status"] == "claimed"


@pytest.mark.timeout(20)
async def test_who_waits_for_any_change_hears_of_one_that_came_before_the_first_read(
    workbench: Workbench, ada: Admitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = (await given.whole_task(workbench))["id"]
    read, may_read = workbench.store.read, asyncio.Event()

    async def late(question: Callable[[Reader], Any]) -> Any:
        await may_read.wait()
        return await read(question)

    with monkeypatch.context() as patched:
        patched.setattr(workbench.store, "read", late)
        wait = {"task_id": task, "until": "changed", "wait_seconds": 30}
        waiting = asyncio.create_task(workbench.dispatch(ada.caller, "wait_for_task", wait))
        await followed(workbench)
    await workbench.dispatch(ada.caller, "claim_task", {"task_id": task})
    may_read.set()
    assert (await waiting)["status"] == "claimed"


async def test_waiting_ends_in_vain_and_for_what_has_ended_at_once(workbench: Workbench, ada: Admitted) -> None:
    task = (await given.whole_task(workbench))["id"]
    assert (await workbench.call("wait_for_task", task_id=task, wait_seconds=0.05))["status"] == "pending"
    await finish(workbench, ada, task)
    for until in ("ended", "changed"):
        found = await workbench.call("wait_for_task", task_id=task, until=until, wait_seconds=3_600)
        assert found["status"] == "completed"


async def test_the_graph_names_who_waits_for_whom_and_who_is_part_of_what(workbench: Workbench) -> None:
    text = (
        "plan: p\ntasks:\n- {name: a, title: a, persona: tester}\n- {name: b, title: b, persona: tester, after: [a]}\n"
    )
    planned = (await workbench.call("create_plan", text=text))["tasks"]
    one = (await given.whole_task(workbench))["id"]
    two = (await given.whole_task(workbench, parent_task_id=one, dependencies=[planned["b"], one]))["id"]
    graph = await workbench.call("get_task_graph")
    edges = [[planned["b"], planned["a"]], [two, one], [two, planned["b"]]]
    assert graph == {"dependencies": sorted(edges), "parents": [[two, one]]}
    assert await workbench.call("get_task_graph", plan="p") == {"dependencies": edges[:1], "parents": []}


async def test_a_subtree_rolls_its_counts_up(workbench: Workbench, ada: Admitted) -> None:
    root = await given.whole_task(workbench, "root")
    left, right = [await given.whole_task(workbench, title, parent_task_id=root["id"]) for title in ("left", "right")]
    leaf = await given.whole_task(workbench, "leaf", "tester", parent_task_id=right["id"], dependencies=[left["id"]])
    other = await given.whole_task(workbench, "other")
    await finish(workbench, ada, left["id"])
    await finish(workbench, ada, other["id"], "fail_task", error_message="no", retryable=False)
    tree = await workbench.call("get_task_tree")

    def shape(node: dict[str, Any]) -> Any:
        return (node["title"], node["open_below"], node["completed_below"], [shape(c) for c in node["children"]])

    leaf_shape = ("leaf", 0, 0, [])
    assert [shape(node) for node in tree["tasks"]] == [
        ("root", 2, 1, [("left", 0, 0, []), ("right", 1, 0, [leaf_shape])]),
        ("other", 0, 0, []),
    ]
    assert tree["counts"] == {"pending": 3, "completed": 1, "failed": 1}
    found = tree["tasks"][0]["children"][1]["children"][0]
    assert (found["id"], found["dependencies"], found["parent_task_id"]) == (leaf["id"], [left["id"]], right["id"])


async def test_a_filtered_tree_keeps_what_leads_to_a_match(workbench: Workbench, ada: Admitted) -> None:
    root = await given.whole_task(workbench, "root")
    left = await given.whole_task(workbench, "left", parent_task_id=root["id"])
    await given.whole_task(workbench, "leaf", "tester", parent_task_id=left["id"])
    await given.whole_task(workbench, "right", parent_task_id=root["id"])
    done = await given.whole_task(workbench, "done")
    await finish(workbench, ada, done["id"])

    async def titles(**how: str) -> Any:
        def name(node: dict[str, Any]) -> Any:
            return {node["title"]: [name(child) for child in node["children"]]}

        return [name(node) for node in (await workbench.call("get_task_tree", **how))["tasks"]]

    assert await titles(filter_persona="tester") == [{"root": [{"left": [{"leaf": []}]}]}]
    assert await titles(filter_persona="TESTER") == await titles(filter_persona="tester")
    assert await titles(filter_status="completed") == [{"done": []}]
    assert await titles(filter_status="completed", filter_persona="tester") == []
    assert await titles(filter_status="pending", filter_persona="implementer") == [
        {"root": [{"left": []}, {"right": []}]}
    ]


async def test_a_tree_may_be_deep_but_never_too_deep_to_be_shown(workbench: Workbench) -> None:
    parent = None
    for depth in range(50):
        parent = (await given.whole_task(workbench, f"d{depth}", parent_task_id=parent))["id"]
    with pytest.raises(BadInput, match="TOO_DEEP"):
        await given.whole_task(workbench, "d50", parent_task_id=parent)
    (node,) = (await workbench.call("get_task_tree"))["tasks"]
    assert node["open_below"] == 49
    assert (await workbench.call("cancel_task", task_id=node["id"]))["status"] == "cancelled"
    assert (await workbench.call("get_task_tree"))["counts"] == {"cancelled": 50}


async def test_cancelling_takes_the_whole_subtree_but_not_what_is_finished(
    workbench: Workbench, ada: Admitted, bob: Admitted
) -> None:
    root = await given.whole_task(workbench, "root")
    done, held = [await given.whole_task(workbench, title, parent_task_id=root["id"]) for title in ("done", "held")]
    leaf = await given.whole_task(workbench, "leaf", parent_task_id=done["id"])
    outside = await given.whole_task(workbench, "outside", dependencies=[leaf["id"]])
    await finish(workbench, ada, done["id"])
    await workbench.dispatch(bob.caller, "claim_task", {"task_id": held["id"]})
    cancelled = await workbench.call("cancel_task", task_id=root["id"], reason="Other plans.")
    assert (cancelled["status"], cancelled["error_message"]) == ("cancelled", "Other plans.")
    states = {t["title"]: t["status"] for t in (await workbench.call("list_tasks"))["tasks"]}
    assert states == {
        **{"root": "cancelled", "done": "completed", "held": "cancelled", "leaf": "cancelled", "outside": "pending"},
    }
    (attempt,) = (await given.task_now(workbench, held["id"]))["attempts"]
    assert (attempt["agent_id"], attempt["outcome"], attempt["error_message"]) == ("bob", "cancelled", "Other plans.")
    (attempt,) = (await given.task_now(workbench, done["id"]))["attempts"]
    assert attempt["outcome"] == "completed"
    with pytest.raises(Conflict, match="LEASE_LOST"):
        await workbench.dispatch(bob.caller, "complete_task", {"task_id": held["id"]})
    assert (await workbench.dispatch(bob.caller, "heartbeat_and_get_tasks", {}))["holding"] == []
    assert (await given.task_now(workbench, outside["id"]))["blocked_by"] == [leaf["id"]]
    subjects = [e["subject"] for e in await events(workbench, "task.cancelled")]
    assert subjects == [f"task:{t['id']}" for t in (root, held, leaf)]


@pytest.mark.parametrize("how", ["complete_task", "fail_task", "cancel_task"])
async def test_what_is_finished_cannot_be_cancelled(workbench: Workbench, ada: Admitted, how: str) -> None:
    task = await given.whole_task(workbench)
    if how == "cancel_task":
        await workbench.call("cancel_task", task_id=task["id"])
    else:
        more = {} if how == "complete_task" else {"error_message": "no", "retryable": False}
        await finish(workbench, ada, task["id"], how, **more)
    before = await given.task_now(workbench, task["id"])
    with pytest.raises(Conflict, match="WRONG_STATE"):
        await workbench.call("cancel_task", task_id=task["id"])
    assert await given.task_now(workbench, task["id"]) == before


async def test_tasks_are_counted_by_state(workbench: Workbench, ada: Admitted) -> None:
    assert await workbench.call("count_tasks") == {"counts": {}}
    for how, more in (("complete_task", {}), ("fail_task", {"error_message": "no", "retryable": False})):
        await finish(workbench, ada, (await given.whole_task(workbench))["id"], how, **more)
    await workbench.call("cancel_task", task_id=(await given.whole_task(workbench))["id"])
    assert [await given.whole_task(workbench) for _ in range(3)]
    counts = [(await workbench.call(op))["counts"] for op in ("count_tasks", "get_task_tree")]
    assert counts == 2 * [{"cancelled": 1, "completed": 1, "failed": 1, "pending": 3}]
