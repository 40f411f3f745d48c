"""The life of a WebSocket connection: connected agents, their grants, and work that outlives it."""

from __future__ import annotations

import asyncio

import pytest

from tests import given
from tests.conftest import Admit, Served, Talk, Talks, limited
from tests.shells.websocket.conftest import accepted, connections_of, events_of, gone

pytestmark = pytest.mark.anyio


async def test_messages_sent_before_a_client_left_are_processed(served: Served, desk: Talk) -> None:
    waiting = [await served.workbench.call("register", name=f"Agent {number}") for number in range(20)]
    for made in waiting:
        await desk.send("desk", "approve", approval_id=made["approval_id"])
    await desk.socket.close()
    async with asyncio.timeout(20), served.workbench.feed.subscribe("agent.assigned", after=0) as assigned:
        subjects = {(await anext(assigned)).subject for _ in waiting}
    assert len(subjects) == len(waiting)


async def test_an_operation_finishes_although_its_client_leaves(served: Served, desk: Talk) -> None:
    await desk.send("desk", "create_worktree", name="island")
    await (await desk.socket.ping())  # git is at work
    await desk.socket.close()
    async with asyncio.timeout(20), served.workbench.feed.subscribe("worktree.created", after=0) as created:
        assert (await anext(created)).subject == "worktree:island"


@limited(max_connections=1, max_in_flight=4)
async def test_a_client_that_left_amid_many_questions_is_forgotten(served: Served, line: Talk) -> None:
    last = (await events_of(served))[-1]["id"]
    await line.send("ada", "list_events", after=last, wait_seconds=30, kinds=["task.created"])
    for _ in range(50):
        await line.send("ada", "ping")
    line.socket.transport.abort()
    await given.task(served.workbench, "News", "tester")
    again = await accepted(f"{served.info.ws_url}/me")
    await again.socket.close()


async def test_an_agent_is_connected_from_its_authentication_to_the_end(
    served: Served, talk: Talks, admit: Admit
) -> None:
    ada = await admit("ada")
    assert await connections_of(served, "ada") == ("disconnected", 0)
    one, two = await talk("one", ada.token), await talk("two", subprotocols=["wb.v1", f"bearer.{ada.token}"])
    await two.say("two", "ping")
    assert await connections_of(served, "ada") == ("connected", 2)
    await one.say("ada", "authenticate", token=ada.token)
    assert await connections_of(served, "ada") == ("connected", 2)
    await one.socket.close()
    await two.socket.close()
    await gone(served, times=2)
    assert await connections_of(served, "ada") == ("disconnected", 0)


async def test_a_changed_grant_counts_from_the_next_message_on(served: Served, line: Talk) -> None:
    call = served.workbench.call
    assert (await line.say("ada", "claim_task"))["type"] == "claim_task_response"
    await call("update_agent", agent_id="ada", changes={"tool": "read"})
    assert (await line.say("ada", "claim_task"))["code"] == "FORBIDDEN"
    await call("update_agent", agent_id="ada", changes={"tool": "write", "role": "planner"})
    assert (await line.say("ada", "create_task", title="One", persona_id="tester"))["type"] == "create_task_response"
    await call("update_agent_tool", tool_id="write", enabled=False)
    assert (await line.say("ada", "create_task", title="Two", persona_id="tester"))["code"] == "TOOL_DISABLED"
    await call("update_agent_tool", tool_id="read", enabled=False)
    assert (await line.say("ada", "list_tasks"))["code"] == "TOOL_DISABLED"
    for tool in ("read", "write"):
        await call("update_agent_tool", tool_id=tool, enabled=True)
    await call("update_agent", agent_id="ada", changes={"agent_id": "eda"})
    assert (await line.say("ada", "whoami"))["code"] == "FORBIDDEN"
    assert (await line.say("me", "whoami"))["data"]["agent_id"] == "eda"
    await call("allow_agent", agent_id="somebody")
    assert (await line.say("me", "whoami"))["code"] == "NOT_ALLOWLISTED"


async def test_an_agent_whose_grant_is_prolonged_is_active_with_its_next_message(served: Served, line: Talk) -> None:
    await served.workbench.call("update_agent", agent_id="ada", changes={"expires_in_seconds": 0.01})
    async with served.workbench.feed.subscribe("agent.deactivated", after=0) as events:
        await anext(events)
    await served.workbench.call("update_agent", agent_id="ada", changes={"expires_at": None})
    assert (await line.say("ada", "whoami"))["data"]["agent_id"] == "ada"
    assert (await served.workbench.call("get_agent", agent_id="ada"))["registration_status"] == "active"
    assert await connections_of(served, "ada") == ("connected", 1)
