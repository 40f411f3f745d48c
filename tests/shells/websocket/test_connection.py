"""The WebSocket of spec 1, spoken to by a real client."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from tests.conftest import Admit, Served, Talk, Talks
from tests.rules.wire.test_message import BAD_FRAMES
from workbench.rules.wire import message
from workbench.settings import Settings
from workbench.store.base import Tx

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
    me = (await line.say("ada", "whoami"))["data"]
    assert (me["agent_id"], me["level"], me["tool"], me["persona_id"]) == ("ada", "worker", "write", "implementer")


@limited(max_failed_logins=10)
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


GUESSES: dict[str, dict[str, Any]] = {
    "authenticate": {"agent_id": "nobody"},
    "read": {"agent_id": "nobody"},
    "write": {"agent_id": "ada"},
    "request_contexts": {"agent_id": "nobody"},
    "announce": {"agent_id": "ada"},
    "registration_status": {"token": WRONG},
}


@limited(max_failed_logins=3)
@pytest.mark.parametrize("action", GUESSES)
async def test_ids_and_tokens_are_guessed_only_so_often_in_whatever_way(talk: Talks, admit: Admit, action: str) -> None:
    await admit("ada")
    line = await talk()
    for _ in range(4):  # says nobody's name, and is no guess
        assert (await line.say("me", "read"))["code"] == "TOKEN_REQUIRED"
    for _ in range(3):
        assert (await line.say("me", action, **GUESSES[action]))["status"] == 401
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


TURNED_AWAY: list[tuple[dict[str, Any], int, str]] = [
    ({"subprotocols": ["wb.v1", f"bearer.{WRONG}"]}, 401, "INVALID_TOKEN"),
    ({"additional_headers": {"Authorization": f"Bearer {WRONG}"}}, 401, "INVALID_TOKEN"),
    ({"origin": "http://evil.example"}, 403, "BAD_ORIGIN"),
    ({"origin": "null"}, 403, "BAD_ORIGIN"),
    ({"origin": "http://[evil"}, 403, "BAD_ORIGIN"),
    ({"uri": "ws://evil.example/ws/me"}, 400, "BAD_HOST"),
    ({"uri": "ws://127.0.0.1.evil.example/ws/me"}, 400, "BAD_HOST"),
    ({"uri": f"ws://127.0.0.1/ws/{'r' * 201}"}, 400, "BAD_CLIENT_ID"),
    ({"uri": "ws://127.0.0.1/ws/robot%007"}, 400, "BAD_CLIENT_ID"),
    ({"uri": "ws://127.0.0.1/ws/robot%1b%5b31m"}, 400, "BAD_CLIENT_ID"),
]


def why_not(refused: InvalidStatus) -> tuple[int, str]:
    """Status and code that a connection was refused with."""
    body = json.loads(refused.response.body or b"{}")
    assert body["success"] is False
    return refused.response.status_code, body["error"]["code"]


async def test_who_may_not_knock_is_turned_away_before_the_first_message(served: Served, talk: Talks) -> None:
    host, port = served.info.url.removeprefix("http://").split(":")
    for turned_away, status, code in TURNED_AWAY:
        with pytest.raises(InvalidStatus) as caught:
            await connect(**{"uri": f"{served.info.ws_url}/me", "host": host, "port": int(port)} | turned_away)
        assert why_not(caught.value) == (status, code), turned_away
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
    data = {"text": "ö🐧\u2028\x7f", "numbers": [10**40, -0.5, 1e300], "deep": [[[[[{}]]]]]}
    assert (await line.say("me", "dance", **data))["original"]["data"] == data


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
async def test_no_more_connections_are_taken_than_the_limit(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    _, second = await talk("one", ada.token), await talk("two")
    with pytest.raises(InvalidStatus) as caught:
        await connect(f"{served.info.ws_url}/three", subprotocols=["wb.v1", f"bearer.{ada.token}"])
    assert why_not(caught.value) == (503, "TOO_MANY_CONNECTIONS")
    await second.socket.close()
    third = await accepted(f"{served.info.ws_url}/three")
    assert (await third.say("three", "ping"))["type"] == "ping_response"
    await third.socket.close()


@limited(max_connections=4)
async def test_strangers_from_one_address_take_half_of_the_connections(
    served: Served, talk: Talks, admit: Admit
) -> None:
    ada = await admit("ada")
    first, _ = await talk("one"), await talk("two")
    with pytest.raises(InvalidStatus) as caught:
        await connect(f"{served.info.ws_url}/three")
    assert why_not(caught.value) == (503, "TOO_MANY_CONNECTIONS")
    await talk("ada", subprotocols=["wb.v1", f"bearer.{ada.token}"])
    await first.say("one", "register", name="Eve")
    await talk("three")


@limited(idle_anonymous_seconds=1)
async def test_who_neither_registers_nor_authenticates_is_sent_away_after_a_while(
    served: Served, talk: Talks, admit: Admit
) -> None:
    ada = await admit("ada")
    waiting, known, idle = await talk("waiting"), await talk("known", ada.token), await talk("idle")
    await waiting.say("waiting", "register", name="Eve")
    assert await closed(idle) == (1008, "IDLE")
    assert await closed(await talk("later")) == (1008, "IDLE")
    for line in (waiting, known):
        assert (await line.say("ada" if line is known else "waiting", "ping"))["type"] == "ping_response"


@limited(max_connections=1, max_in_flight=4)
async def test_a_client_that_left_amid_many_questions_is_forgotten(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    last = (await events_of(served))[-1]["id"]
    line = await talk("me", ada.token)
    await line.send("ada", "list_events", after=last, wait_seconds=30, kinds=["task.created"])
    for _ in range(50):
        await line.send("ada", "ping")
    line.socket.transport.abort()
    await served.workbench.call("create_task", title="News", persona_id="tester")
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
    created = [e for e in await events_of(served) if e["kind"] == "task.created"]
    assert heard == [{"type": "event", "data": event, "request_id": "s"} for event in created]
    assert (await line.say("ada", "ping"))["type"] == "ping_response"


async def test_a_subscription_begins_where_it_is_told_to(served: Served, talk: Talks, admit: Admit) -> None:
    line = await talk("desk", served.workbench.operator_token)
    await admit("ada")
    past = await events_of(served)
    await line.send("desk", "subscribe", after=past[2]["id"])
    heard: list[dict[str, Any]] = []
    while len(heard) < 1 + len(past[3:]):
        said = await line.hear()
        heard += [said] if said["type"] != "new_pending_agent" else []  # told unless it was admitted by then
    assert heard[0]["type"] == "subscribe_response"
    assert [m["data"] for m in heard[1:]] == past[3:]


async def test_strangers_may_not_subscribe(talk: Talks) -> None:
    assert (await (await talk()).say("me", "subscribe"))["code"] == "TOKEN_REQUIRED"


async def test_events_never_come_before_the_answer_to_subscribing(served: Served, talk: Talks) -> None:
    line = await talk("desk", served.workbench.operator_token)
    for number in range(10):
        await line.send("desk", "create_task", title=f"Task {number}", persona_id="tester")
        await line.send("desk", "subscribe", after=0, kinds=["task.*"], request_id=number)
    heard: list[Any] = []
    while len(heard) < 120:  # twenty replies, and ten events for each subscription
        heard.append(await line.hear())
    for number in range(10):
        mine = [m["type"] for m in heard if m.get("request_id") == number]
        assert mine == ["subscribe_response"] + ["event"] * 10


@limited(feed_queue=50)
async def test_a_reader_that_is_too_slow_is_cut_off_and_nobody_waits_for_it(
    served: Served, talk: Talks, admit: Admit
) -> None:
    quick, slow = await admit("quick", role="planner"), await admit("slow", role="planner")
    sluggard = await talk("slow", slow.token)
    other = await talk("quick", quick.token)
    assert (await sluggard.say("slow", "subscribe", after=None, kinds=["task.*"]))["type"] == "subscribe_response"
    assert (await other.say("quick", "subscribe", after=None, kinds=["task.*"]))["type"] == "subscribe_response"
    sluggard.socket.transport.pause_reading()
    for _ in range(200):
        await served.workbench.store.write(lambda tx: tx.emit("task.noted", "task:1", note="x" * 100_000))
        assert (await other.hear())["type"] == "event"
    sluggard.socket.transport.resume_reading()
    last = (await hear_until(sluggard, "error"))[-1]
    assert (last["code"], last["action"]) == ("READER_TOO_SLOW", "subscribe")
    assert (await sluggard.say("slow", "ping"))["type"] == "ping_response"


async def test_a_subscription_can_be_ended_and_is_replaced_by_its_repetition(
    served: Served, talk: Talks, admit: Admit
) -> None:
    ada = await admit("ada")
    line = await talk("me", ada.token)
    for _ in range(3):
        await line.say("ada", "subscribe", after=None, kinds=["task.*"], request_id="a")
    await line.say("ada", "subscribe", after=None, kinds=["task.*"], request_id="b")
    assert (await line.say("ada", "unsubscribe", subscription="b"))["data"] == {"ended": 1}
    await served.workbench.call("create_task", title="One", persona_id="tester")
    assert (await line.hear())["request_id"] == "a"
    assert (await line.say("ada", "unsubscribe"))["data"] == {"ended": 1}


async def test_a_connection_has_a_limited_number_of_subscriptions(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me", ada.token)
    for _ in range(16):
        assert (await line.say("ada", "subscribe", after=None))["type"] == "subscribe_response"
    assert (await line.say("ada", "subscribe", after=None))["code"] == "TOO_MANY_SUBSCRIPTIONS"


@pytest.mark.parametrize(
    "data", [{"kinds": []}, {"kinds": "task.*"}, {"after": -1}, {"after": "x"}, {"limit": 5}], ids=str
)
async def test_what_makes_no_subscription_is_refused(talk: Talks, admit: Admit, data: dict[str, Any]) -> None:
    ada = await admit("ada")
    assert (await (await talk("me", ada.token)).say("ada", "subscribe", **data))["code"] == "INVALID_ARGUMENTS"


# Who is connected, and as what


async def connections_of(served: Served, agent_id: str) -> tuple[str, int]:
    agent = await served.workbench.call("get_agent", agent_id=agent_id)
    return agent["status"], agent["connections"]


async def gone(served: Served, times: int) -> None:
    """Return once so many connections of agents have ended."""
    async with served.workbench.feed.subscribe("agent.disconnected", after=0) as events:
        for _ in range(times):
            await anext(events)


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


async def test_who_authenticates_as_another_takes_the_connection_along(
    served: Served, talk: Talks, admit: Admit
) -> None:
    ada, bob = await admit("ada"), await admit("bob")
    line = await talk("me", ada.token)
    await line.say("ada", "subscribe", after=None)
    await line.say("bob", "authenticate", token=bob.token)
    assert await connections_of(served, "ada") == ("disconnected", 0)
    assert await connections_of(served, "bob") == ("connected", 1)
    assert (await line.say("bob", "unsubscribe"))["data"] == {"ended": 0}


async def test_a_changed_grant_counts_from_the_next_message_on(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me", ada.token)
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


async def test_who_came_with_a_pending_token_may_work_once_admitted(served: Served, talk: Talks) -> None:
    made = await served.workbench.call("register", name="Ada")
    line = await talk("me", subprotocols=["wb.v1", f"bearer.{made['token']}"])
    assert (await line.say("me", "authenticate", token=made["token"]))["code"] == "NOT_ASSIGNED"
    await served.workbench.call("approve", approval_id=made["approval_id"], choices={"agent_id": "ada"})
    assert (await line.hear())["type"] == "agent_assigned"
    assert (await line.say("me", "whoami"))["data"]["agent_id"] == "ada"
    assert await connections_of(served, "ada") == ("connected", 1)
    assert (await line.say("me", "authenticate", agent_id=made["agent_id"], token=made["token"]))["agent_id"] == "ada"


async def test_a_pending_id_is_of_no_use_to_who_has_found_it(served: Served, talk: Talks) -> None:
    made = await served.workbench.call("register", name="Ada")
    line = await talk("thief")
    assert (await line.say("thief", "authenticate", agent_id=made["agent_id"]))["code"] == "TOKEN_REQUIRED"
    assert (await line.say(made["agent_id"], "whoami"))["code"] == "TOKEN_REQUIRED"
    assert (await line.say("thief", "registration_status", token=made["agent_id"]))["code"] == "INVALID_TOKEN"


async def test_who_a_rule_admits_is_told_after_its_registration(served: Served, talk: Talks) -> None:
    await served.workbench.call("add_admission_rule", name="friends", pattern="Ada*")
    operator = await talk("desk", served.workbench.operator_token)
    line = await talk()
    made = await line.say("me", "register", name="Ada")
    assert (made["type"], made["status"]) == ("registration_success", "assigned")
    assert (await line.hear())["type"] == "agent_assigned"
    await line.say("me", "register", name="Eve")
    assert (await operator.hear())["name"] == "Eve"


@limited(max_pending_per_address=3)
async def test_repeated_frames_are_answered_again_and_registrations_are_limited(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk()
    for number in range(3):
        assert (await line.say("me", "ping", request_id=1))["request_id"] == 1
        assert (await line.say("me", "authenticate", token=ada.token, request_id=2))["agent_id"] == "ada"
        assert (await line.say("me", "register", name="Eve", request_id=[number]))["type"] == "registration_success"
    assert (await line.say("me", "register", name="Eve"))["code"] == "TOO_MANY_PENDING"


async def test_a_request_that_comes_again_is_answered_again_and_done_once(
    served: Served, talk: Talks, admit: Admit
) -> None:
    await served.workbench.call("create_project", name="Apollo")
    session = await served.workbench.call("create_session", project_id="Apollo", name="Day one")
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


async def test_what_failed_is_done_when_it_comes_again(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me", ada.token)
    writing = {"content": {"title": "At last"}, "request_id": 7}
    assert (await line.say("me", "write", **writing))["code"] == "SESSION_REQUIRED"
    await served.workbench.call("create_project", name="Apollo")
    session = await served.workbench.call("create_session", project_id="Apollo", name="Day one")
    await served.workbench.call("update_agent", agent_id="ada", changes={"session_id": session["id"]})
    assert (await line.say("me", "write", **writing))["status"] == "success"


@limited(feed_queue=1)
async def test_who_waits_is_told_also_when_others_are_decided_in_throngs(served: Served, talk: Talks) -> None:
    line = await talk()
    made = await line.say("me", "register", name="Ada")

    def throng(tx: Tx) -> None:
        for number in range(20):
            tx.emit("agent.assigned", f"agent:{number}")

    await served.workbench.store.write(throng)
    await served.workbench.call("approve", approval_id=made["approval_id"], choices={"agent_id": "ada"})
    assert (await line.hear())["type"] == "agent_assigned"


async def test_who_waits_is_woken_by_decisions_alone(served: Served, talk: Talks) -> None:
    line = await talk()
    await line.say("me", "register", name="Ada")
    decisions = {"agent.assigned", "agent.rejected", "agent.revoked", "agent.deleted"}
    while served.workbench.feed.patterns != decisions:
        await asyncio.sleep(0.001)


async def test_who_is_prolonged_is_active_with_its_next_message(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me", ada.token)
    await served.workbench.call("update_agent", agent_id="ada", changes={"expires_in_seconds": 0.01})
    async with served.workbench.feed.subscribe("agent.deactivated", after=0) as events:
        await anext(events)
    await served.workbench.call("update_agent", agent_id="ada", changes={"expires_at": None})
    assert (await line.say("ada", "whoami"))["data"]["agent_id"] == "ada"
    assert (await served.workbench.call("get_agent", agent_id="ada"))["registration_status"] == "active"
    assert await connections_of(served, "ada") == ("connected", 1)


# Floods, and the end


@limited(max_messages_per_second=20)
async def test_who_floods_is_told_and_cut_off(served: Served, talk: Talks) -> None:
    line, other = await talk("flood"), await talk("calm")
    for _ in range(10_000):
        await line.send("flood", "ping")
    assert await closed(line) == (1008, "FLOODING")
    assert (await other.say("calm", "ping"))["type"] == "ping_response"


async def test_a_burst_within_the_limit_is_answered(talk: Talks) -> None:
    line = await talk()
    for number in range(2_000):
        await line.send("me", "ping", request_id=number)
    assert [(await line.hear())["request_id"] for _ in range(2_000)] == list(range(2_000))


async def test_stopping_amid_streams_is_silent(
    served: Served, talk: Talks, admit: Admit, caplog: pytest.LogCaptureFixture
) -> None:
    ada = await admit("ada")
    lines = [await talk(f"line-{number}", ada.token) for number in range(3)]
    for line in lines:
        await line.send("ada", "subscribe", after=0)
        await line.send("ada", "list_events", after=None, wait_seconds=0.2, kinds=["no.such"])
    waiting = await talk("waiting")
    await waiting.say("waiting", "register", name="Eve")
    await hear_until(lines[0], "event")
    with caplog.at_level(logging.WARNING):
        await served.servers.stop()
    assert caplog.records == []
    assert await connections_of(served, "ada") == ("disconnected", 0)


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


async def test_revoking_ends_also_the_connection_of_a_client_that_does_not_read(
    served: Served, talk: Talks, admit: Admit
) -> None:
    ada = await admit("ada")
    line = await talk("me", ada.token)
    await line.say("ada", "subscribe", after=None, kinds=["task.*"])
    line.socket.transport.pause_reading()
    for _ in range(200):
        await served.workbench.store.write(lambda tx: tx.emit("task.noted", "task:1", note="x" * 100_000))
    await served.workbench.call("revoke_agent", agent_id="ada")
    await gone(served, times=1)
    assert await connections_of(served, "ada") == ("disconnected", 0)
    line.socket.transport.abort()  # else it waits for the farewell that it does not read


async def test_another_token_ends_the_connections_made_with_the_old_one(
    served: Served, talk: Talks, admit: Admit
) -> None:
    ada = await admit("ada")
    line = await talk("me", ada.token)
    await served.workbench.call("issue_token", agent_id="ada")
    assert await closed(line) == (4401, "TOKEN_REPLACED")


@limited(feed_queue=1)
async def test_revoking_many_at_once_ends_all_their_connections(served: Served, talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk("me", ada.token)

    def throng(tx: Tx) -> None:
        for number in range(20):
            tx.emit("agent.revoked", f"agent:{number}")

    await served.workbench.store.write(throng)
    await served.workbench.call("revoke_agent", agent_id="ada")
    assert await closed(line) == (4401, "REVOKED")


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
