"""Agents as a person manages them: grants, places, tokens, rows they may see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Clock, admitted
from tests.services.agents.strangers import come, status
from workbench.app import Workbench
from workbench.errors import Conflict, NotFound, WorkbenchError
from workbench.model import Access, GrantedAccess, Level
from workbench.ops import OPERATOR
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio


async def place(workbench: Workbench, name: str = "morning") -> dict[str, Any]:
    """A session in a project of its own."""
    project = await given.project(workbench, f"project of {name}")
    return await given.session(workbench, name, project["id"])


async def ids(workbench: Workbench, caller: Any = None, **filters: Any) -> list[str]:
    """The agents that a caller sees."""
    page = await workbench.dispatch(caller or OPERATOR, "list_agents", filters)
    assert page["total"] >= len(page["agents"])
    return [agent["agent_id"] for agent in page["agents"]]


async def test_a_changed_grant_holds_from_the_next_message_on(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada", role="planner")
    session = await place(workbench)
    changes = {"role": "worker", "tool": "read", "access_level": "team_level", "session_id": session["id"], "name": "A"}
    agent = await workbench.call("update_agent", agent_id="ada", changes=changes)
    assert {key: agent[key] for key in changes} == changes
    caller = await workbench.renewed(ada.caller)
    assert (caller.level, caller.tool, caller.access) == (Level.READ, GrantedAccess.READ, Access.TEAM_LEVEL)
    assert caller.session == session["id"]
    events = (await workbench.call("list_events", subject="ada", kinds=["agent.updated"]))["events"]
    assert [event["data"]["changes"] for event in events] == [changes]
    assert [event["session"] for event in events] == [session["id"]]


async def test_a_renamed_agent_keeps_its_token_and_its_history(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    await workbench.call("update_agent", agent_id="ada", changes={"agent_id": "lovelace"})
    assert (await workbench.identify(ada.token)).name == "lovelace"
    assert (await workbench.identify(ada.token)).agent == ada.caller.agent
    await given.refuses("AGENT_NOT_FOUND", workbench.call("get_agent", agent_id="ada"))
    history = (await workbench.call("list_events", subject="lovelace"))["events"]
    assert [event["kind"] for event in history] == ["agent.registered", "agent.assigned", "agent.updated"]


NO_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({}, "INVALID_ARGUMENTS"),
    ({"colour": "red"}, "INVALID_ARGUMENTS"),
    ({"role": "boss"}, "INVALID_ARGUMENTS"),
    ({"expires_in_seconds": -1}, "INVALID_ARGUMENTS"),
    ({"expires_at": "tomorrow"}, "INVALID_ARGUMENTS"),
    ({"expires_at": "2026-01-01T00:00:00"}, "INVALID_ARGUMENTS"),
    ({"expires_at": "9999-12-31T23:59:59.999999Z"}, "INVALID_ARGUMENTS"),
    ({"agent_id": "bob"}, "AGENT_ID_TAKEN"),
    ({"agent_id": "BOB"}, "AGENT_ID_TAKEN"),
    ({"agent_id": "none"}, "BAD_AGENT_ID"),
    ({"agent_id": "a b"}, "BAD_AGENT_ID"),
    ({"session_id": "nowhere"}, "SESSION_NOT_FOUND"),
    ({"team_id": "nobody"}, "TEAM_NOT_FOUND"),
    ({"persona_id": "wizard"}, "PERSONA_NOT_FOUND"),
]


async def test_an_invalid_change_of_many_agents_changes_none(workbench: Workbench, admit: Admit) -> None:
    for name in ("ada", "bob"):
        await admit(name)
    before = await workbench.call("list_agents")
    newest = (await workbench.call("list_events", after=None))["next_after"]
    for changes, code in NO_CHANGES:
        with pytest.raises(WorkbenchError, match=code):
            await workbench.call("assign_agents", agent_ids=["ada", "bob"], changes=changes)
        assert await workbench.call("list_agents") == before, changes
        assert (await workbench.call("list_events", after=newest))["events"] == [], changes


async def test_an_agent_keeps_an_old_id_that_is_no_longer_valid(workbench: Workbench, admit: Admit) -> None:
    """Such as an id that a migration brought, or one that differs from another only in case."""
    old = Query("old", "UPDATE agents SET assigned_agent_id = :new WHERE assigned_agent_id = :agent_id")
    brought: dict[str, str] = {}
    for name, new in (("ada", "null"), ("bob", "NULL")):
        brought[new] = (await admit(name)).token
        await workbench.store.write(lambda tx, name=name, new=new: tx.run(old, agent_id=name, new=new))
    for agent_id, token in brought.items():
        same = {"agent_id": agent_id, "name": "Renamed"}
        assert (await workbench.call("update_agent", agent_id=agent_id, changes=same))["agent_id"] == agent_id
        assert agent_id in (await workbench.call("allow_agent", agent_id=agent_id))["ids"]
        assert (await workbench.identify(token)).name == agent_id
    await given.refuses("BAD_AGENT_ID", workbench.call("allow_agent", agent_id="Null"))
    changed = await workbench.call("update_agent", agent_id="null", changes={"agent_id": "Ada"})
    assert (await workbench.call("update_agent", agent_id="Ada", changes={"agent_id": "ADA"}))["agent_id"] == "ADA"
    assert changed["agent_id"] == "Ada"


async def test_many_agents_are_moved_at_once(workbench: Workbench, admit: Admit) -> None:
    names = [f"agent-{number}" for number in range(20)]
    for name in names:
        await admit(name)
    session = await place(workbench)
    await workbench.call("assign_agents", agent_ids=names, changes={"session_id": session["id"]})
    assert await ids(workbench, session_id=session["id"]) == names
    with pytest.raises(NotFound, match="AGENT_NOT_FOUND"):
        await workbench.call("assign_agents", agent_ids=[*names, "ghost"], changes={"session_id": None})
    assert len(await ids(workbench, session_id=session["id"])) == 20


async def test_a_team_brings_its_members_into_its_session(workbench: Workbench, admit: Admit) -> None:
    await admit("ada")
    here, there = await place(workbench, "here"), await place(workbench, "there")
    team = await given.team(workbench, "red", here["id"])
    agent = await workbench.call("update_agent", agent_id="ada", changes={"team_id": team["id"]})
    assert (agent["session_id"], agent["team"]) == (here["id"], "red")
    with pytest.raises(Conflict, match="TEAM_ELSEWHERE"):
        await workbench.call("update_agent", agent_id="ada", changes={"team_id": team["id"], "session_id": there["id"]})
    agent = await workbench.call("update_agent", agent_id="ada", changes={"session_id": there["id"]})
    assert (agent["session_id"], agent["team_id"]) == (there["id"], None), "another session means leaving the team"


async def test_an_agent_that_names_no_session_is_proposed_and_gets_none(workbench: Workbench, admit: Admit) -> None:
    used = await place(workbench, "used")
    await admit("ada", session_id=used["id"])
    registration = await come(workbench, "cy")
    (question,) = (await workbench.call("list_approvals"))["approvals"]
    assert question["payload"]["suggested_session"] is None
    await workbench.call("approve", approval_id=registration["approval_id"])
    assert (await workbench.call("get_agent", agent_id="cy"))["session_id"] is None


async def test_an_approval_without_a_session_grants_the_one_that_the_request_names(workbench: Workbench) -> None:
    first = await come(workbench, "ann")
    here = await place(workbench, "here")
    inside = replace(OPERATOR, session=here["id"])
    second, third = [await workbench.dispatch(inside, "register", {"name": name}) for name in ("bea", "cleo")]

    async def granted(made: dict[str, Any]) -> Any:
        decided = await workbench.call("approve", approval_id=made["approval_id"])
        return decided["outcome"]["granted"]["session"]

    assert await granted(first) is None, "it named none"
    assert await granted(second) == {"id": here["id"], "name": "here", "project": "project of here"}
    await workbench.call("delete_session", session_id=here["id"])
    assert await granted(third) is None, "the session was deleted"


async def test_a_new_token_ends_the_old_one(workbench: Workbench, admit: Admit) -> None:
    ada = await admit("ada")
    issued = await workbench.call("issue_token", agent_id="ada")
    await given.refuses("INVALID_TOKEN", workbench.identify(ada.token))
    assert (await workbench.identify(issued["token"])).name == "ada"
    events = await workbench.call("list_events", limit=1000)
    assert issued["token"] not in str(events)
    assert "agent.token_issued" in [event["kind"] for event in events["events"]]


async def test_a_deleted_agent_is_hidden_and_locked_out_until_it_is_restored(
    workbench: Workbench, admit: Admit
) -> None:
    ada = await admit("ada")
    await workbench.call("delete_agent", agent_id="ada", reason="a mistake")
    assert await ids(workbench) == []
    assert await ids(workbench, deleted=True) == ["ada"]
    await given.refuses("INVALID_TOKEN", workbench.identify(ada.token))
    await given.refuses("AGENT_NOT_FOUND", workbench.call("delete_agent", agent_id="ada"))
    registration = await workbench.call("register", name="ada")
    with pytest.raises(Conflict, match="deleted"):
        await workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": "ada"})
    restored = await workbench.call("restore_agent", agent_id="ada")
    assert (restored["agent_id"], restored["deleted_at"]) == ("ada", None)
    assert (await workbench.identify(ada.token)).level is Level.WORKER


async def test_the_access_level_decides_which_agents_an_agent_sees(workbench: Workbench, admit: Admit) -> None:
    session = await place(workbench)
    team = await given.team(workbench, "red", session["id"])
    ada = await admit("ada", team_id=team["id"])
    await admit("bob", team_id=team["id"])
    await admit("cy", session_id=session["id"])
    await admit("dee", session_id=(await place(workbench, "elsewhere"))["id"])
    names = ["ada", "bob", "cy", "dee"]
    for level, seen in (("self_only", names[:1]), ("team_level", names[:2]), ("session_level", names[:3])):
        await workbench.call("update_agent", agent_id="ada", changes={"access_level": level})
        caller = await workbench.identify(ada.token)
        assert await ids(workbench, caller) == seen
        for name in seen:
            assert (await workbench.dispatch(caller, "get_agent", {"agent_id": name}))["agent_id"] == name
        for name in names[len(seen) :]:
            await given.refuses("AGENT_NOT_FOUND", workbench.dispatch(caller, "get_agent", {"agent_id": name}))


async def test_all_pages_add_up_to_the_list(workbench: Workbench, admit: Admit) -> None:
    names = [f"a{number}" for number in range(7)]
    for name in names:
        await admit(name)
    pages, cursor = [], None
    while not pages or cursor is not None:
        page = await workbench.call("list_agents", limit=3, cursor=cursor)
        pages.append([agent["agent_id"] for agent in page["agents"]])
        assert page["total"] == 7
        cursor = page["next_cursor"]
    assert pages == [names[:3], names[3:6], names[6:]]
    await given.refuses("BAD_CURSOR", workbench.call("list_agents", cursor="bm9uc2Vuc2U"))


async def test_agents_are_found_by_id_name_and_persona(workbench: Workbench, admit: Admit) -> None:
    await admit("ada")
    await admit("bob", persona_id="reviewer")
    found = {search: await ids(workbench, search=search) for search in ("AD", "review", "%", "_", "z")}
    assert found == {"AD": ["ada"], "review": ["bob"], "%": [], "_": [], "z": []}


@pytest.fixture
async def timed(settings: Settings, clock: Clock) -> Any:
    """An open project whose clock the test moves."""
    async with Workbench.open(settings, clock=clock) as opened:
        yield opened


async def test_a_grant_that_has_run_out_is_refused_and_can_be_prolonged(
    timed: Workbench, clock: Clock, settings: Settings
) -> None:
    token = (await admitted(timed, "ada", expires_in_seconds=60)).token
    async with timed.feed.subscribe("agent.expired", after=0) as events:
        clock.forward(61)
        caller = await timed.identify(token)
        assert (caller.level, caller.barred) == (Level.ANONYMOUS, "GRANT_EXPIRED")
        await given.refuses("GRANT_EXPIRED", timed.dispatch(caller, "whoami", {}))
        assert (await anext(events)).subject == f"agent:{caller.agent}"
    (agent,) = (await timed.call("list_agents"))["agents"]
    assert agent["registration_status"] == "inactive"
    await timed.call("update_agent", agent_id="ada", changes={"expires_at": None})
    assert (await timed.identify(token)).level is Level.WORKER


async def test_registrations_that_nobody_decides_on_are_dropped(timed: Workbench, clock: Clock) -> None:
    registration = await come(timed)
    async with timed.feed.subscribe("agent.rejected", after=0) as events:
        clock.forward(timed.settings.pending_expires_seconds + 1)
        rejected = await anext(events)
    assert rejected.data == {"reason": "not decided in time"}
    assert (await timed.call("list_approvals"))["approvals"] == []
    state = await status(timed, registration["token"])
    assert (state["status"], state["reason"]) == ("rejected", "not decided in time")


async def test_a_tool_that_is_switched_off_is_off_at_the_next_message(workbench: Workbench, admit: Admit) -> None:
    writer, reader = (await admit("ada")).caller, (await admit("bob", tool="read")).caller
    for caller, level in ((writer, Level.READ), (reader, Level.ANONYMOUS)):  # a writer may still read
        tool = caller.tool.value
        await workbench.call("update_agent_tool", tool_id=tool, enabled=False)
        now = await workbench.renewed(caller)
        assert (now.level, now.tool, now.barred) == (level, GrantedAccess.READ, "TOOL_DISABLED")
        await workbench.call("update_agent_tool", tool_id=tool, enabled=True)
        assert (await workbench.renewed(caller)).level is caller.level


async def test_approve_many_admits_each_agent_or_reports_its_error(workbench: Workbench) -> None:
    made = [await come(workbench, "ada") for _ in range(5)]
    numbers = [one["approval_id"] for one in made]
    await workbench.call("reject", approval_id=numbers[2])
    answer = await workbench.call("approve_many", approval_ids=[*numbers, 99], choices={"tool": "read"})
    decided = {d["approval_id"]: d["ok"] for d in answer["decisions"]}
    assert decided == {number: number != numbers[2] for number in numbers} | {99: False}
    codes = [d["error"]["code"] for d in answer["decisions"] if not d["ok"]]
    assert codes == ["ALREADY_DECIDED", "APPROVAL_NOT_FOUND"]
    assert sorted(await ids(workbench, status="assigned")) == ["ada", "ada-2", "ada-4", "ada-5"], "as each was proposed"


async def test_reject_many_rejects_every_agent_with_the_reason(workbench: Workbench) -> None:
    made = [await come(workbench) for _ in range(3)]
    await workbench.call("reject_many", approval_ids=[m["approval_id"] for m in made], reason="closed")
    states = [await status(workbench, one["token"]) for one in made]
    assert [(state["status"], state["reason"]) for state in states] == [("rejected", "closed")] * 3
