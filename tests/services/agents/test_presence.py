"""Agents that say hello and goodbye, and who is there."""

from __future__ import annotations

import pytest

from tests.conftest import Admit
from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused
from workbench.ops import ANONYMOUS, OPERATOR
from workbench.store.queries import Query

pytestmark = pytest.mark.anyio

STARTED = Query(
    "started",
    "INSERT INTO processes (agent_id, profile, pid, started, mark, log, spawned_at) "
    "VALUES (:agent, 'script', 1, 0, NULL, '', 0)",
)
ENDED = Query("ended", "UPDATE processes SET ended_at = :now")


async def there(workbench: Workbench, **filters: str) -> list[tuple[str, str]]:
    """Who is there, and how."""
    found = (await workbench.call("get_active_agents", **filters))["agents"]
    return [(agent["agent_id"], agent["presence"]) for agent in found]


async def test_registering_for_a_persona_is_registering(workbench: Workbench) -> None:
    made = await workbench.dispatch(ANONYMOUS, "register_agent", {"persona_id": "tester"})
    assert made["status"] == "pending"
    (question,) = (await workbench.call("list_approvals"))["approvals"]
    assert (question["payload"]["name"], question["payload"]["persona_id"]) == ("tester", "tester")
    with pytest.raises(NotFound, match="PERSONA_NOT_FOUND"):
        await workbench.dispatch(ANONYMOUS, "register_agent", {"persona_id": "wizard"})


async def test_who_is_there_holds_a_task_or_could_take_one(workbench: Workbench, admit: Admit) -> None:
    ada, _ = (await admit("ada")).caller, await admit("bob", persona_id="tester")
    await workbench.call("create_task", title="T", persona_id="implementer")
    async with workbench.connected(ada, "websocket", "a"):
        await workbench.dispatch(ada, "claim_task", {})
        assert await there(workbench) == [("ada", "active"), ("bob", "idle")]
        assert await there(workbench, persona_id="Tester") == [("bob", "idle")]
    await workbench.call("revoke_agent", agent_id="bob")
    assert ("bob", "idle") not in await there(workbench)


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


async def test_an_agent_that_says_goodbye_gives_its_tasks_back_and_may_return(
    workbench: Workbench, admit: Admit
) -> None:
    ada = (await admit("ada")).caller
    task = await workbench.call("create_task", title="T", persona_id="implementer")
    await workbench.dispatch(ada, "heartbeat_and_get_tasks", {})
    await workbench.dispatch(ada, "claim_task", {})
    assert await workbench.dispatch(ada, "deregister_agent", {}) == {"ok": True}
    assert (await workbench.call("get_task", task_id=task["id"]))["status"] == "pending"
    assert (await workbench.call("get_agent", agent_id="ada"))["registration_status"] == "inactive"
    assert (await workbench.dispatch(ada, "claim_task", {}))["task"]["id"] == task["id"]


async def test_only_a_person_says_goodbye_for_others(workbench: Workbench, admit: Admit) -> None:
    ada, bob = (await admit("ada")).caller, (await admit("bob")).caller
    with pytest.raises(Refused, match="FORBIDDEN"):
        await workbench.dispatch(ada, "deregister_agent", {"agent_id": "bob"})
    await workbench.dispatch(bob, "heartbeat_and_get_tasks", {})
    await workbench.dispatch(OPERATOR, "deregister_agent", {"agent_id": "bob"})
    assert (await workbench.call("get_agent", agent_id="bob"))["registration_status"] == "inactive"
    with pytest.raises(BadInput, match="AGENT_ONLY"):
        await workbench.call("deregister_agent")
