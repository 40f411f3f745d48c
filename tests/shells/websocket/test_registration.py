"""Selecting a tool, registering, and waiting to be admitted, by WebSocket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.conftest import Served, Talk, Talks, limited
from tests.shells.websocket.conftest import connections_of, decide_others, events_of
from workbench.rules.wire import message

pytestmark = pytest.mark.anyio


async def test_reading_or_writing_needs_an_id_first_and_there_is_no_other_tool(talk: Talks) -> None:
    line = await talk("me")
    for tool in ("read", "write"):
        assert await line.say("me", "select_tool", tool=tool) == message.agent_id_required("me", tool)
    others: list[Any] = ["admin", "", None, 5, {"read": True}, ["read"]]
    for other in others:
        reply = await line.say("me", "select_tool", tool=other)
        assert (reply["type"], reply["code"]) == ("error", "INVALID_TOOL")
        assert reply["message"] == "Invalid tool selection. Must be 'register', 'read', or 'write'"


@pytest.mark.parametrize(("action", "selection"), [("register", {}), ("select_tool", {"tool": "register"})])
async def test_registering_makes_a_pending_agent_and_tells_the_token_once(
    served: Served, talk: Talks, action: str, selection: dict[str, str]
) -> None:
    line = await talk("robot-7")
    reply = await line.say("robot-7", action, name="Test Agent", capabilities={"nlp": True}, **selection)
    assert (reply["type"], reply["status"]) == ("registration_success", "pending")
    assert reply["agent_id"].startswith("pending_")
    assert reply["token"].startswith("wba_")
    assert reply["message"] == "Registration successful. Waiting for human assignment of permanent agent_id."
    [agent] = (await served.workbench.call("list_agents"))["agents"]
    assert (agent["name"], agent["capabilities"]) == ("Test Agent", {"nlp": True})
    everything = json.dumps([agent, await served.workbench.call("list_approvals"), await events_of(served)])
    assert reply["token"] not in everything


@pytest.mark.parametrize(("client_id", "name"), [("robot-7", "Agent_robot-7"), ("r" * 200, f"Agent_{'r' * 94}")])
async def test_an_agent_without_a_name_is_named_for_its_connection(
    served: Served, talk: Talks, client_id: str, name: str
) -> None:
    assert (await (await talk(client_id)).say(client_id, "register"))["type"] == "registration_success"
    [agent] = (await served.workbench.call("list_agents"))["agents"]
    assert agent["name"] == name


async def test_a_waiting_agent_is_told_of_its_rejection_and_the_reason(served: Served, talk: Talks) -> None:
    line = await talk()
    reply = await line.say("me", "register", name="Ada")
    await served.workbench.call("reject", approval_id=reply["approval_id"], reason="Not today")
    told = await line.hear()
    assert (told["type"], told["reason"], told["code"]) == ("registration_rejected", "Not today", "REJECTED")
    for action, data in {"authenticate": {"token": reply["token"]}, "read": {"agent_id": reply["agent_id"]}}.items():
        refused = await line.say("me", action, **data)
        assert (refused["type"], refused["code"], refused["message"]) == ("error", "REJECTED", told["message"])
        if action == "authenticate":
            assert await line.hear() == told


async def test_an_agent_with_a_pending_token_may_work_once_admitted(served: Served, talk: Talks) -> None:
    registration = await served.workbench.call("register", name="Ada")
    line = await talk("me", subprotocols=["wb.v1", f"bearer.{registration['token']}"])
    assert (await line.say("me", "authenticate", token=registration["token"]))["code"] == "NOT_ASSIGNED"
    await served.workbench.call("approve", approval_id=registration["approval_id"], choices={"agent_id": "ada"})
    assert (await line.hear())["type"] == "agent_assigned"
    assert (await line.say("me", "whoami"))["data"]["agent_id"] == "ada"
    assert await connections_of(served, "ada") == ("connected", 1)
    assert (await line.say("me", "authenticate", agent_id=registration["agent_id"], token=registration["token"]))[
        "agent_id"
    ] == "ada"


async def test_a_pending_id_alone_authenticates_nobody(served: Served, talk: Talks) -> None:
    registration = await served.workbench.call("register", name="Ada")
    line = await talk("thief")
    assert (await line.say("thief", "authenticate", agent_id=registration["agent_id"]))["code"] == "TOKEN_REQUIRED"
    assert (await line.say(registration["agent_id"], "whoami"))["code"] == "TOKEN_REQUIRED"
    assert (await line.say("thief", "registration_status", token=registration["agent_id"]))["code"] == "INVALID_TOKEN"


async def test_an_agent_admitted_by_a_rule_is_told_after_its_registration(
    served: Served, talk: Talks, desk: Talk
) -> None:
    await served.workbench.call("add_admission_rule", name="friends", pattern="Ada*")
    line = await talk()
    reply = await line.say("me", "register", name="Ada")
    assert (reply["type"], reply["status"]) == ("registration_success", "assigned")
    assert (await line.hear())["type"] == "agent_assigned"
    await line.say("me", "register", name="Eve")
    assert (await desk.hear())["name"] == "Eve"


@limited(feed_queue=1)
async def test_a_waiting_agent_is_told_even_among_many_other_decisions(served: Served, talk: Talks) -> None:
    line = await talk()
    made = await line.say("me", "register", name="Ada")
    await decide_others(served, "agent.assigned")
    choices = {"agent_id": "ada", "tool": "read"}
    await served.workbench.call("approve", approval_id=made["approval_id"], choices=choices)
    assert await line.hear() == {"type": "agent_assigned", "agent_id": "ada", "session_id": None, "tool": "read"}
    reply = await line.say("me", "authenticate", agent_id="ada", token=made["token"])
    assert reply == message.authentication_success("ada", "Ada", "read")


async def test_a_waiting_connection_subscribes_to_decisions_only(served: Served, talk: Talks) -> None:
    line = await talk()
    await line.say("me", "register", name="Ada")
    decisions = {"agent.assigned", "agent.rejected", "agent.revoked", "agent.deleted"}
    while served.workbench.feed.patterns != decisions:
        await asyncio.sleep(0.001)
