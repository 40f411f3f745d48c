"""Agents that connect and deregister, and the list of present ones."""

from __future__ import annotations

import pytest

from tests import given
from tests.conftest import Admit, Clock, admitted
from workbench.app import Workbench
from workbench.model import SECOND
from workbench.ops import ANONYMOUS, OPERATOR
from workbench.services.agents import presence
from workbench.state.settings import Settings
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

STARTED = Query(
    "started",
    "INSERT INTO processes (agent_id, profile, pid, started, mark, spawned_at) "
    "VALUES (:agent, 'script', 1, 0, NULL, 0)",
)
ENDED = Query("ended", "UPDATE processes SET ended_at = :now")


async def there(workbench: Workbench, **filters: str) -> list[tuple[str, str]]:
    """The present agents and their states."""
    agents = (await workbench.call("get_active_agents", **filters))["agents"]
    return [(agent["agent_id"], agent["presence"]) for agent in agents]


async def test_register_agent_registers_an_agent_named_after_its_persona(workbench: Workbench) -> None:
    registration = await workbench.dispatch(ANONYMOUS, "register_agent", {"persona_id": "tester"})
    assert registration["status"] == "pending"
    (question,) = (await workbench.call("list_approvals"))["approvals"]
    assert (question["payload"]["name"], question["payload"]["persona_id"]) == ("tester", "tester")
    await given.refuses("PERSONA_NOT_FOUND", workbench.dispatch(ANONYMOUS, "register_agent", {"persona_id": "wizard"}))


async def test_the_list_of_present_agents_says_who_is_active_and_who_is_idle(
    workbench: Workbench, admit: Admit
) -> None:
    ada, bob = (await admit("ada")).caller, (await admit("bob", persona_id="tester")).caller
    await admit("cyd")
    task_id = await given.task(workbench)
    async with workbench.connected(ada, "websocket", "a"), workbench.connected(bob, "websocket", "b"):
        await workbench.dispatch(ada, "claim_task", {})
        assert await there(workbench) == [("ada", "active"), ("bob", "idle")]
        assert await there(workbench, persona_id="Tester") == [("bob", "idle")]
        await workbench.dispatch(ada, "complete_task", {"task_id": task_id})
        assert await there(workbench) == [("ada", "idle"), ("bob", "idle")]
        await workbench.call("revoke_agent", agent_id="bob")
        assert await there(workbench) == [("ada", "idle")]


async def test_an_agent_whose_connection_ends_is_active_while_its_process_runs(
    workbench: Workbench, admit: Admit
) -> None:
    ada = (await admit("ada")).caller
    async with workbench.connected(ada, "websocket", "a"):
        await workbench.store.write(lambda tx: tx.run(STARTED, agent=ada.agent))
    assert (await workbench.call("get_agent", agent_id="ada"))["registration_status"] == "active"
    async with workbench.connected(ada, "websocket", "b"):
        await workbench.store.write(lambda tx: tx.run(ENDED, now=tx.now))
    assert (await workbench.call("get_agent", agent_id="ada"))["registration_status"] == "inactive"


async def test_events_of_a_connection_have_its_kind_its_client_and_the_reason_of_its_end(
    workbench: Workbench, admit: Admit
) -> None:
    await given.project(workbench)
    ada = (await admit("ada", session_id=(await given.session(workbench, "s"))["id"])).caller
    async with workbench.connected(ada, "websocket", "a"):
        pass
    async with workbench.connected(ada, "sse", "b"):
        await workbench.store.write(lambda tx: presence.close_left_open(tx, [""]))
    events = (await workbench.call("list_events", kinds=["agent.connected", "agent.disconnected"]))["events"]
    assert [event["data"] for event in events] == [
        {"transport": "websocket", "client_id": "a"},
        {"transport": "websocket", "reason": "disconnected"},
        {"transport": "sse", "client_id": "b"},
        {"transport": "sse", "reason": "its server has ended"},
    ]
    assert {(event["subject"], event["session"]) for event in events} == {(f"agent:{ada.agent}", ada.session)}


async def test_an_agent_is_silent_when_it_has_sent_nothing_for_longer_than_the_setting(
    settings: Settings, clock: Clock
) -> None:
    changed = settings.model_copy(update={"silent_seconds": 1_000.0})
    async with Workbench.open(changed, clock=clock) as workbench:
        ada, bob = [await admitted(workbench, name) for name in ("ada", "bob")]
        await workbench.dispatch(ada.caller, "heartbeat_and_get_tasks", {})
        clock.now += SECOND
        await workbench.dispatch(bob.caller, "heartbeat_and_get_tasks", {})
        clock.now -= SECOND
        for more, state in ((1_000 * SECOND, "active"), (1, "inactive")):
            clock.now += more
            await presence.expire_due(workbench._ctx)
            assert (await workbench.call("get_agent", agent_id="ada"))["registration_status"] == state
        assert (await workbench.call("get_agent", agent_id="bob"))["registration_status"] == "active"
        (event,) = (await workbench.call("list_events", kinds=["agent.deactivated"]))["events"]
    assert (event["actor"], event["data"]) == ("system", {"reason": "no heartbeat"})


async def test_a_deregistered_agent_gives_its_tasks_back_and_may_return(workbench: Workbench, admit: Admit) -> None:
    ada, bob = (await admit("ada")).caller, (await admit("bob")).caller
    task_id = await given.task(workbench)
    await workbench.dispatch(ada, "heartbeat_and_get_tasks", {})
    await workbench.dispatch(ada, "claim_task", {})
    assert await workbench.dispatch(ada, "deregister_agent", {}) == {"ok": True}
    assert (await given.task_now(workbench, task_id))["status"] == "pending"
    assert (await workbench.call("get_agent", agent_id="ada"))["registration_status"] == "inactive"
    assert (await workbench.dispatch(ada, "claim_task", {}))["task"]["id"] == task_id
    await given.refuses("FORBIDDEN", workbench.dispatch(ada, "deregister_agent", {"agent_id": "bob"}))
    await workbench.dispatch(bob, "heartbeat_and_get_tasks", {})
    await workbench.dispatch(OPERATOR, "deregister_agent", {"agent_id": "bob"})
    assert (await workbench.call("get_agent", agent_id="bob"))["registration_status"] == "inactive"
    await given.refuses("AGENT_ONLY", workbench.call("deregister_agent"))
