"""Sessions of tasks: an agent sees and claims tasks of its session and of none, never of another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Admitted, followed
from workbench.app import Workbench
from workbench.errors import Conflict, NotFound, Refused

pytestmark = pytest.mark.anyio

PLACES = ("north", "south")


@pytest.fixture
async def workbench(workbench: Workbench) -> Workbench:
    """An open project with two sessions, `north` and `south`."""
    await given.project(workbench, "map")
    for place in PLACES:
        await given.session(workbench, place, "map")
    return workbench


async def put(workbench: Workbench, admit: Admit, name: str, session: str | None, **choices: str) -> Admitted:
    """An agent that was put into a session, or into none."""
    return await move(workbench, await admit(name, **choices), session)


async def move(workbench: Workbench, agent: Admitted, session: str | None) -> Admitted:
    """The agent, moved to another session."""
    await workbench.call("update_agent", agent_id=agent.agent_id, changes={"session_id": session})
    return Admitted(agent.agent_id, agent.token, await workbench.renewed(agent.caller))


async def board(workbench: Workbench) -> dict[str, int]:
    """A task of each session and one of none, by the session's name."""
    return {str(place): await given.task(workbench, str(place), session_id=place) for place in (*PLACES, None)}


async def titles(workbench: Workbench, agent: Admitted, name: str, **more: Any) -> list[str]:
    """The titles of tasks an operation answers with."""
    return [task["title"] for task in (await workbench.dispatch(agent.caller, name, more))["tasks"]]


async def all_done(workbench: Workbench, agent: Admitted) -> list[str]:
    """The titles of the tasks that an agent takes, until there is none for it."""
    done = []
    while task := await given.claim(workbench, agent):
        done.append(task["title"])
        await given.done_by(workbench, agent, "complete_task", task["id"])
    return done


@pytest.mark.parametrize("place", [*PLACES, None])
async def test_an_agent_sees_and_claims_the_tasks_of_its_session_and_of_none(
    workbench: Workbench, admit: Admit, place: str | None
) -> None:
    ada, ids = await put(workbench, admit, "ada", place), await board(workbench)
    mine = [name for name in ids if name in (str(place), "None")]
    for name in ("list_tasks", "get_task_tree", "get_available_tasks"):
        assert await titles(workbench, ada, name) == mine
    assert await titles(workbench, ada, "get_tasks", task_ids=list(ids.values())) == mine
    assert (await workbench.dispatch(ada.caller, "count_tasks", {}))["counts"] == {"pending": len(mine)}
    for name, task_id in ids.items():
        asking = {"task_id": task_id}
        for op in ("get_task", "get_task_status", "get_task_logs", "wait_for_task", "claim_task"):
            more = asking | ({"wait_seconds": 0} if op == "wait_for_task" else {})
            if name in mine:
                await workbench.dispatch(ada.caller, op, more)
            else:
                with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
                    await workbench.dispatch(ada.caller, op, more)
    assert [task["title"] for task in (await workbench.call("list_tasks"))["tasks"]] == list(ids)


async def test_the_best_task_is_claimed_from_the_session_or_from_none(workbench: Workbench, admit: Admit) -> None:
    ada = await put(workbench, admit, "ada", "north")
    for priority, place in ((5, "north"), (4, None), (9, "south"), (3, "north"), (4, None)):
        await given.task(workbench, f"{place} {priority}", session_id=place, priority=priority)
    assert await all_done(workbench, ada) == ["north 5", "None 4", "None 4", "north 3"]


async def test_an_agent_with_a_worktree_and_a_session_takes_tasks_that_fit_both(
    workbench: Workbench, settle: Admit
) -> None:
    ada = await move(workbench, await settle("ada", "lab"), "north")
    for session in ("north", None, "south"):
        for worktree in ("lab", None, "attic"):
            await given.task(workbench, f"{session} {worktree}", session_id=session, target_worktree=worktree)
    fitting = ["north lab", "north None", "None lab", "None None"]
    assert await titles(workbench, ada, "get_available_tasks") == fitting
    assert await all_done(workbench, ada) == fitting


async def test_a_task_is_reserved_only_for_an_agent_that_sees_its_session(workbench: Workbench, admit: Admit) -> None:
    ada, ids = await put(workbench, admit, "ada", "north"), await board(workbench)
    with pytest.raises(Conflict, match="OTHER_SESSION"):
        await workbench.call("reassign_task", task_id=ids["south"], assigned_agent_id="ada")
    with pytest.raises(Conflict, match="OTHER_SESSION"):
        await given.task(workbench, session_id="south", assigned_agent_id="ada")
    with pytest.raises(NotFound, match="SESSION_NOT_FOUND"):
        await given.task(workbench, session_id="west")
    await workbench.call("reassign_task", task_id=ids["north"], assigned_agent_id="ada")
    ada = await move(workbench, ada, "south")
    assert await titles(workbench, ada, "get_available_tasks") == ["south", "None"]
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await given.claim(workbench, ada, ids["north"])
    ada = await move(workbench, ada, "north")
    assert (await given.claim(workbench, ada))["id"] == ids["north"]


async def test_a_planner_plans_for_its_own_session(workbench: Workbench, admit: Admit) -> None:
    pam, ids = await put(workbench, admit, "pam", "north", role="planner"), await board(workbench)
    north = (await given.task_now(workbench, ids["north"]))["session_id"]
    for said in ({}, {"session_id": "north"}):
        task = await given.whole_task(workbench, by=pam, **said)
        assert task["session_id"] == north
    with pytest.raises(Refused, match="FORBIDDEN"):
        await given.task(workbench, by=pam, session_id="south")
    for foreign in ({"dependencies": [ids["south"]]}, {"parent_task_id": ids["south"]}):
        with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
            await given.task(workbench, by=pam, **foreign)
    steering: dict[str, dict[str, Any]] = {
        **{"cancel_task": {}, "retry_task": {}, "reassign_task": {"assigned_agent_id": None}},
        **{"set_priority": {"priority": 1}, "add_dependency": {"depends_on": ids["north"]}},
    }
    for name, more in steering.items():
        with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
            await given.done_by(workbench, pam, name, ids["south"], **more)
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await given.done_by(workbench, pam, "add_dependency", task["id"], depends_on=ids["south"])


async def test_a_subtask_belongs_to_the_session_of_its_parent(workbench: Workbench, admit: Admit) -> None:
    ada, ids = await put(workbench, admit, "ada", "north"), await board(workbench)
    for part_of, session in (("north", ada.caller.session), ("None", None)):
        await given.claim(workbench, ada, ids[part_of])
        part = {"parent_task_id": ids[part_of], "title": "part"}
        assert (await workbench.dispatch(ada.caller, "create_subtask", part))["session_id"] == session


async def test_a_task_whose_parent_is_elsewhere_is_still_in_the_tree(workbench: Workbench, admit: Admit) -> None:
    ada, ids = await put(workbench, admit, "ada", "north"), await board(workbench)
    await given.task(workbench, "part", parent_task_id=ids["south"])
    assert await titles(workbench, ada, "get_task_tree") == ["north", "None", "part"]
    (south,) = [t for t in (await workbench.call("get_task_tree"))["tasks"] if t["title"] == "south"]
    assert [child["title"] for child in south["children"]] == ["part"]


async def test_the_graph_and_the_filter_by_session_show_no_other(workbench: Workbench, admit: Admit) -> None:
    ada, ids = await put(workbench, admit, "ada", "north"), await board(workbench)
    for task in ("north", "south"):
        await workbench.call("add_dependency", task_id=ids[task], depends_on=ids["None"])
    graph = await workbench.dispatch(ada.caller, "get_task_graph", {})
    assert graph["dependencies"] == [[ids["north"], ids["None"]]]
    for place, seen in (("north", ["north"]), ("south", [])):
        session = (await workbench.call("get_task", task_id=ids[place]))["session_id"]
        assert await titles(workbench, ada, "list_tasks", session_id=session) == seen
        assert [t["title"] for t in (await workbench.call("list_tasks", session_id=session))["tasks"]] == [place]


async def test_events_of_tasks_say_their_session(workbench: Workbench, admit: Admit) -> None:
    ada, ids = await put(workbench, admit, "ada", "north"), await board(workbench)
    await given.claim(workbench, ada, ids["north"])
    await given.done_by(workbench, ada, "release_task", ids["north"])
    await given.end(workbench, ada, ids["north"])
    await given.end(workbench, ada, ids["south"], "cancelled")
    events = (await workbench.call("list_events", kinds=["task.*"], limit=1000))["events"]
    place = {f"task:{ids[name]}": name for name in ids}
    session = {name: (await given.task_now(workbench, ids[name]))["session_id"] for name in ids}
    assert {(place[event["subject"]], event["session"]) for event in events} == set(session.items())
    heard = (await workbench.dispatch(ada.caller, "list_events", {"kinds": ["task.*"]}))["events"]
    assert {place[event["subject"]] for event in heard} == {"north", "None"}


@pytest.mark.timeout(20)
async def test_a_waiting_heartbeat_returns_only_tasks_of_the_agents_session(workbench: Workbench, admit: Admit) -> None:
    ada = await put(workbench, admit, "ada", "north")
    waiting = asyncio.create_task(workbench.dispatch(ada.caller, "heartbeat_and_get_tasks", {"wait_seconds": 30}))
    await followed(workbench)
    for place in ("south", "north"):
        await given.task(workbench, place, session_id=place)
    assert [task["title"] for task in (await waiting)["available"]] == ["north"]


@pytest.mark.parametrize("noun", ["session", "project"])
async def test_an_agent_of_a_deleted_session_is_given_no_task_until_it_is_restored(
    workbench: Workbench, admit: Admit, noun: str
) -> None:
    ada = await put(workbench, admit, "ada", "north")
    tasks = await board(workbench)
    name = {"session": "north", "project": "map"}[noun]
    await workbench.call(f"delete_{noun}", **{f"{noun}_id": name})
    assert await all_done(workbench, ada) == []
    assert await titles(workbench, ada, "get_available_tasks") == []
    with pytest.raises(Conflict, match="your session 'north' is deleted"):
        await given.claim(workbench, ada, tasks["None"])
    await workbench.call(f"restore_{noun}", **{f"{noun}_id": name})
    assert sorted(await all_done(workbench, ada)) == ["None", "north"]
