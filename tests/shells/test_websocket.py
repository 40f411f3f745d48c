"""The WebSocket of spec 1, spoken to by a real client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from tests.conftest import Admit, Served, Talk, Talks
from tests.rules.test_message import BAD_FRAMES
from workbench.rules import message
from workbench.settings import Settings

pytestmark = pytest.mark.anyio

WRONG = f"wba_{'x' * 43}"


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """The settings of a fresh project, with the changes a test asks for."""
    return settings.model_copy(update=getattr(request, "param", {}))


def limited(**limits: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("settings", [limits], indirect=True, ids=str)


async def closed(line: Talk) -> tuple[int, str]:
    """How the server ends the connection, after whatever it still has to say."""
    with pytest.raises(ConnectionClosedError) as caught:
        await hear_until(line, "nothing else")
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code, caught.value.rcvd.reason


async def hear_until(line: Talk, kind: str) -> list[dict[str, Any]]:
    """Everything that is heard up to a message of a kind."""
    heard = [await line.hear()]
    while heard[-1]["type"] != kind:
        heard.append(await line.hear())
    return heard


async def accepted(address: str) -> Talk:
    """A connection as soon as the server takes one."""
    while True:
        try:
            line = Talk(await connect(address))
        except InvalidStatus:
            await asyncio.sleep(0.01)
        else:
            await line.hear()
            return line


# Selecting a tool and registering


async def test_a_client_is_first_asked_for_a_tool(served: Served) -> None:
    async with connect(f"{served.info.ws_url}/me") as socket:
        assert json.loads(await socket.recv()) == message.prompt()


async def test_reading_or_writing_needs_an_id_first(talk: Talks) -> None:
    line = await talk("me")
    for tool in ("read", "write"):
        assert await line.say("me", "select_tool", tool=tool) == message.agent_id_required("me", tool)


async def test_there_is_no_other_tool(talk: Talks) -> None:
    line = await talk()
    others: list[Any] = ["admin", "", None, 5, {"read": True}, ["read"]]
    for tool in others:
        reply = await line.say("me", "select_tool", tool=tool)
        assert (reply["type"], reply["code"]) == ("error", "INVALID_TOOL")
        assert reply["message"] == "Invalid tool selection. Must be 'register', 'read', or 'write'"


@pytest.mark.parametrize("action", ["register", "select_tool"])
async def test_registering_makes_a_pending_agent_and_tells_the_token_once(
    served: Served, talk: Talks, action: str
) -> None:
    selection = {"tool": "register"} if action == "select_tool" else {}
    line = await talk("robot-7")
    reply = await line.say("robot-7", action, name="Test Agent", capabilities={"nlp": True}, **selection)
    assert reply["type"] == "registration_success"
    assert reply["status"] == "pending"
    assert reply["agent_id"].startswith("pending_")
    assert reply["token"].startswith("wba_")
    assert reply["message"] == "Registration successful. Waiting for human assignment of permanent agent_id."
    [agent] = (await served.workbench.call("list_agents"))["agents"]
    assert (agent["name"], agent["capabilities"]) == ("Test Agent", {"nlp": True})
    everything = json.dumps([agent, await served.workbench.call("list_approvals"), await events_of(served)])
    assert reply["token"] not in everything


async def events_of(served: Served) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await served.workbench.call("list_events", limit=1_000))["events"]
    return listed


@pytest.mark.parametrize(("client_id", "name"), [("robot-7", "Agent_robot-7"), ("r" * 200, f"Agent_{'r' * 94}")])
async def test_who_gives_no_name_is_named_for_its_connection(
    served: Served, talk: Talks, client_id: str, name: str
) -> None:
    assert (await (await talk(client_id)).say(client_id, "register"))["type"] == "registration_success"
    [agent] = (await served.workbench.call("list_agents"))["agents"]
    assert agent["name"] == name


async def test_who_waits_is_told_that_it_was_admitted(served: Served, talk: Talks) -> None:
    line = await talk()
    made = await line.say("me", "register", name="Ada")
    choices = {"agent_id": "ada", "tool": "read"}
    await served.workbench.call("approve", approval_id=made["approval_id"], choices=choices)
    assert await line.hear() == {"type": "agent_assigned", "agent_id": "ada", "session_id": None, "tool": "read"}
    reply = await line.say("me", "authenticate", agent_id="ada", token=made["token"])
    assert reply == message.authentication_success("ada", "read")


async def test_who_waits_is_told_that_it_was_rejected_and_why(served: Served, talk: Talks) -> None:
    line = await talk()
    made = await line.say("me", "register", name="Ada")
    await served.workbench.call("reject", approval_id=made["approval_id"], reason="Not today")
    assert await line.hear() == {"type": "registration_rejected", "reason": "Not today"}


# Authentication


async def test_an_id_and_its_token_bind_the_connection(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk()
    assert await line.say("me", "authenticate", agent_id="ada", token=ada.token) == message.authentication_success(
        "ada", "write"
    )
    assert (await line.say("ada", "whoami"))["data"] == {
        "agent_id": "ada",
        "level": "worker",
        "persona_id": "implementer",
        "worktree": None,
    }


async def test_authentication_is_refused_for_a_reason(served: Served, talk: Talks, admit: Admit) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    waiting = await served.workbench.call("register", name="Eve")
    line = await talk()
    refused: list[tuple[dict[str, Any], str]] = [
        ({"agent_id": "ada"}, "TOKEN_REQUIRED"),
        ({"agent_id": "ada", "token": None}, "TOKEN_REQUIRED"),
        ({"agent_id": "ada", "token": [ada.token]}, "TOKEN_REQUIRED"),
        ({"agent_id": "ada", "token": WRONG}, "INVALID_TOKEN"),
        ({"agent_id": "ada", "token": bob.token}, "INVALID_TOKEN"),
        ({"agent_id": ["bob"], "token": bob.token}, "INVALID_TOKEN"),
        ({"agent_id": waiting["agent_id"], "token": waiting["token"]}, "NOT_ASSIGNED"),
    ]
    for data, code in refused:
        reply = await line.say("me", "authenticate", **data)
        assert (reply["type"], reply["action"], reply["code"]) == ("error", "authenticate", code)
        assert (await line.say("me", "whoami"))["code"] == "TOKEN_REQUIRED"


@limited(max_failed_logins=3)
async def test_too_many_wrong_tokens_end_the_connection(talk: Talks) -> None:
    line = await talk()
    for _ in range(3):
        assert (await line.say("me", "authenticate", token=WRONG))["code"] == "INVALID_TOKEN"
    assert await closed(line) == (4401, "TOO_MANY_FAILED_LOGINS")


def test_five_wrong_tokens_are_too_many(settings: Settings) -> None:
    assert settings.max_failed_logins == 5


async def test_a_token_may_come_as_a_subprotocol(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me", subprotocols=["wb.v1", f"bearer.{ada.token}"])
    assert line.socket.subprotocol == "wb.v1"
    assert (await line.say("ada", "whoami"))["data"]["agent_id"] == "ada"
    waiting = await served.workbench.call("register", name="Eve")
    line = await talk("eve", subprotocols=["wb.v1", f"bearer.{waiting['token']}"])
    assert (await line.say("eve", "whoami"))["code"] == "NOT_ASSIGNED"


TURNED_AWAY: list[dict[str, Any]] = [
    {"subprotocols": ["wb.v1", f"bearer.{WRONG}"]},
    {"additional_headers": {"Authorization": f"Bearer {WRONG}"}},
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://[evil"},
    {"uri": "ws://evil.example/ws/me"},
    {"uri": "ws://127.0.0.1.evil.example/ws/me"},
]


async def test_who_may_not_knock_is_turned_away_before_the_first_message(served: Served, talk: Talks) -> None:
    host, port = served.info.url.removeprefix("http://").split(":")
    for turned_away in TURNED_AWAY:
        with pytest.raises(InvalidStatus) as caught:
            await connect(**{"uri": f"{served.info.ws_url}/me", "host": host, "port": int(port)} | turned_away)
        assert caught.value.response.status_code == 403, turned_away
    line = await talk("me", origin="http://localhost:8888")
    assert (await line.say("me", "ping"))["type"] == "ping_response"


# What a connection may say


async def test_a_bound_connection_speaks_for_nobody_else(talk: Talks, admit: Admit) -> None:
    ada, _ = await admit("ada"), await admit("bob")
    line = await talk("me", ada.token)
    for action in ("whoami", "claim_task", "subscribe", "select_tool", "no_such_action"):
        reply = await line.say("bob", action)
        assert (reply["type"], reply["code"], reply["action"]) == ("error", "FORBIDDEN", action)
    assert (await line.say("ada", "claim_task", agent_id="bob"))["code"] == "FORBIDDEN"
    for name in ("me", "ada"):
        assert (await line.say(name, "claim_task", agent_id="ada"))["type"] == "claim_task_response"


async def test_before_that_the_first_element_is_free(talk: Talks) -> None:
    assert (await (await talk("me")).say("somebody", "ping"))["type"] == "ping_response"


async def test_a_connection_can_be_bound_anew(talk: Talks, admit: Admit) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    line = await talk("me", ada.token)
    assert (await line.say("bob", "authenticate", token=bob.token))["agent_id"] == "bob"
    assert (await line.say("bob", "whoami"))["data"]["agent_id"] == "bob"
    assert (await line.say("ada", "whoami"))["code"] == "FORBIDDEN"


async def test_who_selected_reading_cannot_write(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me")
    await line.say("me", "select_tool", tool="read")
    assert (await line.say("me", "authenticate", token=ada.token))["tool"] == "read"
    assert (await line.say("ada", "list_tasks"))["type"] == "list_tasks_response"
    assert (await line.say("ada", "claim_task"))["code"] == "FORBIDDEN"


async def test_the_selection_counts_also_after_authentication(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me", ada.token)
    await line.say("ada", "select_tool", tool="read")
    assert (await line.say("ada", "claim_task"))["code"] == "FORBIDDEN"
    await line.say("ada", "select_tool", tool="write")
    assert (await line.say("ada", "claim_task"))["type"] == "claim_task_response"


async def test_who_was_granted_reading_cannot_select_more(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada", tool="read")
    line = await talk("me")
    await line.say("me", "select_tool", tool="write")
    assert (await line.say("me", "authenticate", token=ada.token))["tool"] == "read"
    assert (await line.say("ada", "claim_task"))["code"] == "FORBIDDEN"


async def test_the_operator_may_come_by_websocket(served: Served, talk: Talks) -> None:
    line = await talk("desk", served.workbench.operator_token)
    assert (await line.say("desk", "list_approvals"))["data"] == {"approvals": []}


async def test_what_is_not_known_is_echoed(talk: Talks) -> None:
    assert await (await talk()).say("me", "dance", tempo=120) == {
        "type": "echo",
        "original": {"agent": "me", "action": "dance", "data": {"tempo": 120}},
    }


async def test_every_kind_of_reply_carries_the_id_of_its_request(talk: Talks) -> None:
    line = await talk()
    for number, (action, kind) in enumerate(
        {
            "ping": "ping_response",
            "dance": "echo",
            "get_task": "error",
            "authenticate": "error",
            "register": "registration_success",
        }.items()
    ):
        reply = await line.say("me", action, request_id=number)
        assert (reply["type"], reply["request_id"]) == (kind, number)


# What a connection survives, and what not


async def test_nothing_that_is_no_frame_ends_the_connection(talk: Talks) -> None:
    line = await talk()
    for text in (*BAD_FRAMES.values(), b'["me", "ping", {}]', b"\xff\x00"):
        await line.socket.send(text)
        reply = await line.hear()
        assert (reply["type"], reply["code"], reply["action"]) == ("error", "BAD_MESSAGE", None)
    assert (await line.say("me", "ping"))["type"] == "ping_response"


async def test_what_is_echoed_comes_back_as_it_was(talk: Talks) -> None:
    line = await talk()
    data = {"text": "ö🐧\u2028\0", "numbers": [10**40, -0.5, 1e300], "deep": [[[[[{}]]]]]}
    assert (await line.say("me", "dance", **data))["original"]["data"] == data


async def test_text_that_is_not_utf8_ends_the_connection(talk: Talks) -> None:
    line = await talk()
    await line.socket.send(b"\xff\xfe", text=True)
    assert (await closed(line))[0] == 1007


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


async def test_what_a_client_sent_before_it_left_is_done_to_its_end(served: Served, talk: Talks) -> None:
    waiting = [await served.workbench.call("register", name=f"Agent {number}") for number in range(20)]
    line = await talk("desk", served.workbench.operator_token)
    for made in waiting:
        await line.send("desk", "approve", approval_id=made["approval_id"])
    await line.socket.close()
    async with asyncio.timeout(20), served.workbench.feed.subscribe("agent.assigned", after=0) as assigned:
        subjects = {(await anext(assigned)).subject for _ in waiting}
    assert len(subjects) == len(waiting)


async def test_what_was_begun_is_finished_although_its_client_leaves_amid_it(served: Served, talk: Talks) -> None:
    line = await talk("desk", served.workbench.operator_token)
    await line.send("desk", "create_worktree", name="island")
    await (await line.socket.ping())  # git is at work
    await line.socket.close()
    async with asyncio.timeout(20), served.workbench.feed.subscribe("worktree.created", after=0) as created:
        assert (await anext(created)).subject == "worktree:island"


@limited(max_connections=2)
async def test_no_more_connections_are_taken_than_the_limit(served: Served, talk: Talks) -> None:
    _, second = await talk("one"), await talk("two")
    with pytest.raises(InvalidStatus):
        await connect(f"{served.info.ws_url}/three")
    await second.socket.close()
    third = await accepted(f"{served.info.ws_url}/three")
    assert (await third.say("three", "ping"))["type"] == "ping_response"
    await third.socket.close()


@limited(max_connections=1, max_in_flight=4)
async def test_a_client_that_left_amid_many_questions_is_forgotten(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    last = (await events_of(served))[-1]["id"]
    line = await talk("me", ada.token)
    await line.send("ada", "list_events", after=last, wait_seconds=30, kinds=["agent.registered"])
    for _ in range(50):
        await line.send("ada", "ping")
    line.socket.transport.abort()
    await served.workbench.call("register", name="Somebody else")
    again = await accepted(f"{served.info.ws_url}/me")
    await again.socket.close()


# Events


async def test_subscribing_streams_what_happens(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    last = (await events_of(served))[-1]["id"]
    line = await talk("me", ada.token)
    reply = await line.say("ada", "subscribe", after=last, kinds=["task.*"], request_id="s")
    assert reply == {"type": "subscribe_response", "data": {"after": last}, "request_id": "s"}
    await served.workbench.call("register", name="Not asked for")
    for number in (1, 2, 3):
        await served.workbench.call("create_task", title=f"Task {number}", persona_id="tester")
    heard = [await line.hear() for _ in range(3)]
    assert [m["data"]["data"]["title"] for m in heard] == ["Task 1", "Task 2", "Task 3"]
    assert heard == [{"type": "event", "data": e} for e in await events_of(served) if e["kind"] == "task.created"]
    assert (await line.say("ada", "ping"))["type"] == "ping_response"


async def test_a_subscription_begins_where_it_is_told_to(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    past = await events_of(served)
    line = await talk("me", ada.token)
    await line.send("ada", "subscribe", after=past[2]["id"])
    heard = [await line.hear() for _ in range(1 + len(past[3:]))]
    assert [m["data"] for m in heard if m["type"] == "event"] == past[3:]


async def test_strangers_may_not_subscribe(talk: Talks) -> None:
    assert (await (await talk()).say("me", "subscribe"))["code"] == "TOKEN_REQUIRED"


# Revocation


async def test_revoking_ends_an_agents_connections_at_once(served: Served, talk: Talks, admit: Admit) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    by_message = await talk("one", ada.token)
    by_subprotocol = await talk("two", subprotocols=["wb.v1", f"bearer.{ada.token}"])
    other = await talk("three", bob.token)
    await served.workbench.call("revoke_agent", agent_id="ada")
    for line in (by_message, by_subprotocol):
        assert await closed(line) == (4401, "REVOKED")
    assert (await other.say("bob", "whoami"))["data"]["agent_id"] == "bob"
    assert (await other.say("bob", "authenticate", token=ada.token))["code"] == "INVALID_TOKEN"


async def test_a_connection_that_was_bound_anew_outlives_its_first_agent(
    served: Served, talk: Talks, admit: Admit
) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    line = await talk("me", ada.token)
    await line.say("me", "authenticate", token=bob.token)
    await served.workbench.call("revoke_agent", agent_id="ada")
    assert (await line.say("bob", "whoami"))["data"]["agent_id"] == "bob"
    await served.workbench.call("revoke_agent", agent_id="bob")
    assert await closed(line) == (4401, "REVOKED")
