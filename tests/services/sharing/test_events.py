"""The operation that lists events and waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, followed
from workbench.app import Workbench
from workbench.errors import BadInput, Conflict, Unauthenticated
from workbench.ops import ANONYMOUS, OPERATOR, Caller
from workbench.services.sharing import events
from workbench.state.settings import Settings

pytestmark = pytest.mark.anyio


async def page_of(workbench: Workbench, caller: Caller = OPERATOR, **how: Any) -> dict[str, Any]:
    return await workbench.dispatch(caller, "list_events", how)


async def all_of(workbench: Workbench, caller: Caller = OPERATOR, **how: Any) -> list[dict[str, Any]]:
    """The events of all pages from the first on."""
    found, after = [], -1
    while (page := await page_of(workbench, caller, after=max(after, 0), **how))["next_after"] != after:
        found += page["events"]
        after = page["next_after"]
    return found


async def test_events_are_listed_in_order_with_actor_kind_and_subject(workbench: Workbench, admit: Admit) -> None:
    last = (await page_of(workbench))["next_after"]
    planner = await admit("paula", role="planner")
    await workbench.dispatch(planner.caller, "create_task", {"title": "t", "persona_id": "tester"})
    page = await page_of(workbench, after=last)
    assert [(e["kind"], e["actor"]) for e in page["events"]] == [
        ("agent.registered", "operator"),
        ("approval.requested", "operator"),
        ("agent.assigned", "operator"),
        ("approval.approved", "operator"),
        ("agent.activated", "paula"),
        ("task.created", "paula"),
    ]
    assert page["events"][-1]["subject"] == "task:1"
    ids = [e["id"] for e in page["events"]]
    assert ids == sorted(set(ids))
    assert page["next_after"] == ids[-1]
    assert (await page_of(workbench, after=ids[-1])) == {"events": [], "next_after": ids[-1]}


async def test_pages_neither_skip_nor_repeat_also_when_kinds_are_chosen(workbench: Workbench, admit: Admit) -> None:
    for number in range(5):
        await given.task(workbench, f"t{number}")
        await admit(f"a{number}")
    for kinds in (["*"], ["task.*"], ["task.created", "agent.*"], ["nothing.*"]):
        whole = (await page_of(workbench, kinds=kinds, limit=1000))["events"]
        assert await all_of(workbench, kinds=kinds, limit=3) == whole


@pytest.mark.timeout(20)
async def test_a_filtered_page_of_events_skips_the_events_that_do_not_match(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = (await page_of(workbench))["next_after"]
    for number in range(30):
        await given.task(workbench, f"t{number}")
    await workbench.call("set_priority", task_id=1, priority=1)
    chosen = {"after": start, "kinds": ["task.prioritised"], "limit": 2}
    page = await page_of(workbench, **chosen)
    assert [e["subject"] for e in page["events"]] == ["task:1"]
    for name in ("PAGES", "PAGE"):
        monkeypatch.setattr(events, name, 3)
    page = await page_of(workbench, **chosen)
    assert (page["events"], page["next_after"]) == ([], start + 2 + 3 + 3)
    while not page["events"]:
        page = await page_of(workbench, **chosen | {"after": page["next_after"]})
    assert [e["subject"] for e in page["events"]] == ["task:1"]


@pytest.mark.timeout(20)
async def test_the_newest_events_come_in_pages_that_neither_skip_nor_repeat(
    workbench: Workbench, admit: Admit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await admit("ada")
    for number in range(30):
        await given.task(workbench, f"t{number}")
    for name in ("PAGES", "PAGE"):
        monkeypatch.setattr(events, name, 3)
    for caller, kinds in ((OPERATOR, ["*"]), (OPERATOR, ["agent.*", "task.prioritised"]), (ada.caller, ["*"])):
        backward: list[Any] = []
        wanted: dict[str, Any] = {"kinds": kinds, "limit": 2}
        while wanted.get("before", 1) is not None:
            page = await workbench.dispatch(caller, "list_newest_events", wanted)
            assert len(page["events"]) <= 2
            backward = page["events"] + backward
            wanted["before"] = page["next_before"]
        assert backward == await all_of(workbench, caller, kinds=kinds)
    [created] = (await workbench.call("list_newest_events", subject="task:7"))["events"]
    assert created["data"]["title"] == "t6"


@pytest.mark.timeout(20)
async def test_waiting_for_events_ends_with_the_first_match_or_at_the_limit(
    workbench: Workbench, settings: Settings
) -> None:
    last = (await page_of(workbench))["next_after"]
    waiting = asyncio.create_task(page_of(workbench, after=last, kinds=["task.*"], wait_seconds=30))
    await followed(workbench)
    await workbench.call("register", name="ada")
    await given.task(workbench, "one")
    page = await waiting
    assert [e["kind"] for e in page["events"]] == ["task.created"]
    assert page["next_after"] == page["events"][0]["id"]
    again = await page_of(workbench, after=last, kinds=["task.*"], wait_seconds=30)
    assert again["events"] == page["events"]
    async with Workbench.open(settings.model_copy(update={"wait_limit_seconds": 0.05})) as hasty:
        last = (await page_of(hasty))["next_after"]
        assert await page_of(hasty, after=last, wait_seconds=3_600) == {"events": [], "next_after": last}


async def test_an_event_exists_exactly_if_its_change_does(workbench: Workbench) -> None:
    last = (await page_of(workbench))["next_after"]
    with pytest.raises(BadInput):
        await workbench.call("create_plan", text="tasks: []")
    calls = [given.task(workbench, "x" * (0 if number % 2 else 9)) for number in range(10)]
    await asyncio.gather(*calls, return_exceptions=True)
    subjects = [e["subject"] for e in (await page_of(workbench, after=last))["events"]]
    tasks = (await workbench.call("list_tasks"))["tasks"]
    assert len(tasks) == 5
    assert sorted(subjects) == sorted(f"task:{task['id']}" for task in tasks)
    with pytest.raises(Unauthenticated, match="TOKEN_REQUIRED"):
        await page_of(workbench, ANONYMOUS)


async def test_an_agent_sees_others_events_by_access_level_and_never_across_sessions(
    workbench: Workbench, admit: Admit
) -> None:
    await given.project(workbench)
    for name in ("here", "there"):
        await given.session(workbench, name)
    await given.team(workbench, "red", "here")
    levels = ("self_only", "team_level", "session_level")
    readers = {level: (await admit(f"ada-{level}", team_id="red", access_level=level)).caller for level in levels}
    mate, neighbour = (await admit("mate", team_id="red")).caller, (await admit("neighbour", session_id="here")).caller
    stranger = (await admit("stranger", session_id="there")).caller
    await workbench.dispatch(ANONYMOUS, "register", {"name": "who"})
    after = (await page_of(workbench, after=None))["next_after"]
    for other in (mate, neighbour, stranger):
        await workbench.dispatch(other, "write", {"content": {"title": "x"}})
    for other in (neighbour, stranger):
        async with workbench.connected(other, "websocket", "x"):
            pass
    comings = [f"agent.{done}" for done in ("activated", "connected", "disconnected", "deactivated")]
    of_the_team = {("context.written", "mate")}
    of_the_session = {("agent.activated", "mate"), *((kind, "neighbour") for kind in (*comings, "context.written"))}
    for level, seen in zip(levels, (set(), of_the_team, of_the_team | of_the_session), strict=True):
        told = (await page_of(workbench, readers[level], after=0, limit=1000))["events"]
        news = {(e["kind"], e["actor"]) for e in told if e["id"] > after and not e["actor"].startswith("ada-")}
        assert news == seen, level
        assert not any(event["kind"].startswith(("project.", "approval.")) for event in told)
        assert not any("who" in str(event["data"]) for event in told)


async def test_a_former_id_of_an_agent_is_not_given_to_another(workbench: Workbench, admit: Admit) -> None:
    await admit("first")
    await workbench.call("update_agent", agent_id="first", changes={"agent_id": "renamed"})
    registration = await workbench.call("register", name="first")
    with pytest.raises(Conflict, match="AGENT_ID_TAKEN"):
        await workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": "first"})
    decided = await workbench.call("approve", approval_id=registration["approval_id"])
    assert decided["outcome"]["agent_id"] == "first-2"
    await workbench.call("update_agent", agent_id="renamed", changes={"agent_id": "first"})
    assert (await workbench.call("get_agent", agent_id="first"))["name"] == "first"
