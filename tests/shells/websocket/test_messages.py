"""The messages of WebSocket clients, and their replies."""

from __future__ import annotations

import logging

import pytest

from tests import given
from tests.conftest import Admit, Served, Talk, Talks, limited
from tests.rules.wire.test_message import BAD_FRAMES
from tests.shells.websocket.conftest import closed

pytestmark = pytest.mark.anyio


async def test_a_connection_speaks_for_anybody_until_it_is_bound_and_then_for_nobody_else(
    talk: Talks, admit: Admit
) -> None:
    ada, _ = await admit("ada"), await admit("bob")
    line = await talk("me")
    assert (await line.say("somebody", "ping"))["type"] == "ping_response"
    await line.say("me", "authenticate", token=ada.token)
    for action in ("whoami", "claim_task", "subscribe", "select_tool", "no_such_action"):
        reply = await line.say("bob", action)
        assert (reply["type"], reply["code"], reply["action"]) == ("error", "FORBIDDEN", action)
    assert (await line.say("ada", "claim_task", agent_id="bob"))["code"] == "FORBIDDEN"
    for name in ("me", "ada"):
        assert (await line.say(name, "claim_task", agent_id="ada"))["type"] == "claim_task_response"


async def test_an_agent_that_selected_read_cannot_write_until_it_selects_write(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me")
    await line.say("me", "select_tool", tool="read")
    assert (await line.say("me", "authenticate", token=ada.token))["tool"] == "read"
    assert (await line.say("ada", "list_tasks"))["type"] == "list_tasks_response"
    for tool, answer in (("read", "error"), ("write", "claim_task_response"), ("read", "error")):
        reply = await line.say("ada", "claim_task")
        assert (reply["type"], reply.get("code")) == (answer, "FORBIDDEN" if tool == "read" else None)
        await line.say("ada", "select_tool", tool="write" if tool == "read" else "read")


async def test_an_agent_granted_read_cannot_select_write(talk: Talks, admit: Admit) -> None:
    line = await talk("me")
    await line.say("me", "select_tool", tool="write")
    ada = await admit("ada", tool="read")
    assert (await line.say("me", "authenticate", token=ada.token))["tool"] == "read"
    assert (await line.say("ada", "claim_task"))["code"] == "FORBIDDEN"


async def test_the_operator_may_come_by_websocket(desk: Talk) -> None:
    assert (await desk.say("desk", "list_approvals"))["data"] == {"approvals": []}


async def test_every_kind_of_reply_carries_the_id_of_its_request(talk: Talks) -> None:
    line = await talk()
    kinds = {"ping": "ping_response", "dance": "echo", "get_task": "error", "authenticate": "error"}
    for number, (action, kind) in enumerate((kinds | {"register": "registration_success"}).items()):
        reply = await line.say("me", action, request_id=number)
        assert (reply["type"], reply["request_id"]) == (kind, number)


async def test_malformed_frames_do_not_end_the_connection(talk: Talks) -> None:
    line = await talk()
    for text in (*BAD_FRAMES.values(), b'["me", "ping", {}]', b"\xff\x00"):
        await line.socket.send(text)
        reply = await line.hear()
        assert (reply["type"], reply["code"], reply["action"]) == ("error", "BAD_MESSAGE", None)
    assert (await line.say("me", "ping"))["type"] == "ping_response"


async def test_an_unknown_action_is_echoed_unchanged(talk: Talks) -> None:
    data = {"text": "ö🐧\u2028\x7f", "numbers": [10**40, -0.5, 1e300], "deep": [[[[[{}]]]]]}
    original = {"agent": "me", "action": "dance", "data": data}
    assert await (await talk()).say("me", "dance", **data) == {"type": "echo", "original": original}


async def test_text_that_is_not_utf8_ends_the_connection(talk: Talks, caplog: pytest.LogCaptureFixture) -> None:
    line = await talk()
    await line.socket.send(b"\xff\xfe", text=True)
    assert (await closed(line))[0] == 1007
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@limited(max_frame_bytes=1_024)
async def test_a_frame_that_is_too_large_ends_the_connection(talk: Talks) -> None:
    line = await talk()
    room = 1_024 - len('["me", "ping", {"request_id": ""}]')
    assert (await line.say("me", "ping", request_id="x" * room))["type"] == "ping_response"
    await line.send("me", "ping", request_id="x" * (room + 1))
    assert (await closed(line))[0] == 1009


@limited(max_in_flight=8)
async def test_many_messages_at_once_are_answered_in_order(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada", role="planner")
    line = await talk("me", ada.token)
    actions = ["ping", "create_task", "dance", "list_tasks", "get_task"] * 40
    arguments = {"create_task": {"title": "One of many", "persona_id": "tester"}, "get_task": {"task_id": 10**9}}
    for number, action in enumerate(actions):
        await line.send("ada", action, request_id=number, **arguments.get(action, {}))
    assert [(await line.hear())["request_id"] for _ in actions] == list(range(len(actions)))


async def test_a_request_that_comes_again_is_answered_again_and_done_once(
    served: Served, talk: Talks, admit: Admit
) -> None:
    await given.project(served.workbench)
    session = await given.session(served.workbench, "Day one")
    ada, bob = await admit("ada", session_id=session["id"]), await admit("bob", session_id=session["id"])
    line = await talk("me", ada.token)
    registering = {"name": "Eve", "request_id": "r"}
    writing = {"content": {"title": "Once"}, "request_id": 7}
    for _ in range(3):  # also while the first is under way
        await line.send("me", "register", **registering)
        await line.send("me", "write", **writing)
    first, *again = [(await line.hear(), await line.hear()) for _ in range(3)]
    assert again == [first, first]
    assert [reply["type"] for reply in first] == ["registration_success", "write_response"]
    assert len((await served.workbench.call("list_approvals"))["approvals"]) == 1
    assert len((await served.workbench.call("read"))["data"]) == 1
    await line.say("me", "authenticate", token=bob.token)
    assert (await line.say("me", "write", **writing))["context_id"] != first[1]["context_id"]
    for number in range(256):
        await line.send("me", "write", content={"title": "Later"}, request_id=f"later {number}")
    assert {(await line.hear())["type"] for _ in range(256)} == {"write_response"}
    assert (await line.say("me", "register", **registering))["token"] != first[0]["token"]


async def test_a_failed_request_is_tried_again_under_the_same_request_id(served: Served, line: Talk) -> None:
    writing = {"content": {"title": "At last"}, "request_id": 7}
    assert (await line.say("me", "write", **writing))["code"] == "SESSION_REQUIRED"
    await given.project(served.workbench)
    session = await given.session(served.workbench, "Day one")
    await served.workbench.call("update_agent", agent_id="ada", changes={"session_id": session["id"]})
    assert (await line.say("me", "write", **writing))["status"] == "success"
