"""Events by WebSocket: where a subscription begins, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.conftest import Admit, Served, Talk, Talks, limited
from tests.shells.websocket.conftest import events_of, hear_until

pytestmark = pytest.mark.anyio


async def test_subscribing_streams_what_happens(served: Served, line: Talk) -> None:
    last = (await events_of(served))[-1]["id"]
    reply = await line.say("ada", "subscribe", after=last, kinds=["task.*"], request_id="s")
    assert reply == {"type": "subscribe_response", "data": {"after": last}, "request_id": "s"}
    await served.workbench.call("register", name="Not asked for")
    for number in (1, 2, 3):
        await given.task(served.workbench, f"Task {number}", "tester")
    messages = [await line.hear() for _ in range(3)]
    assert [m["data"]["data"]["title"] for m in messages] == ["Task 1", "Task 2", "Task 3"]
    created = [e for e in await events_of(served) if e["kind"] == "task.created"]
    assert messages == [{"type": "event", "data": event, "request_id": "s"} for event in created]
    assert (await line.say("ada", "ping"))["type"] == "ping_response"


async def test_a_subscription_begins_where_it_is_told_to(served: Served, desk: Talk, admit: Admit) -> None:
    await admit("ada")
    past = await events_of(served)
    await desk.send("desk", "subscribe", after=past[2]["id"])
    heard: list[dict[str, Any]] = []
    while len(heard) < 1 + len(past[3:]):
        message = await desk.hear()
        heard += [message] if message["type"] != "new_pending_agent" else []  # told unless it was admitted by then
    assert heard[0]["type"] == "subscribe_response"
    assert [m["data"] for m in heard[1:]] == past[3:]


async def test_a_subscription_without_a_beginning_begins_now(served: Served, line: Talk) -> None:
    await given.task(served.workbench, "Before", "tester")
    last = (await events_of(served))[-1]["id"]
    assert (await line.say("ada", "subscribe", kinds=["task.*"]))["data"] == {"after": last}
    await given.task(served.workbench, "After", "tester")
    assert (await line.hear())["data"]["data"]["title"] == "After"


async def test_a_subscriber_may_leave_out_its_own_events(served: Served, talk: Talks, admit: Admit) -> None:
    await given.project(served.workbench)
    session = await given.session(served.workbench, "Day one")
    near = {"session_id": session["id"], "access_level": "session_level"}
    ada, bob = await admit("ada", **near), await admit("bob", **near)
    line = await talk("me", ada.token)
    wanted = {"kinds": ["context.written"], "after": None, "mine": False, "request_id": "s"}
    assert (await line.say("ada", "subscribe", **wanted))["type"] == "subscribe_response"
    assert (await line.say("ada", "write", content={"title": "Mine"}))["type"] == "write_response"
    await served.workbench.dispatch(bob.caller, "write", {"content": {"title": "Bob's"}})
    message = await line.hear()
    assert (message["type"], message["data"]["actor"]) == ("event", "bob")
    others = await served.workbench.dispatch(ada.caller, "list_events", {"kinds": ["context.*"], "mine": False})
    assert [event["actor"] for event in others["events"]] == ["bob"]


async def test_events_never_come_before_the_answer_to_subscribing(desk: Talk) -> None:
    for number in range(10):
        await desk.send("desk", "create_task", title=f"Task {number}", persona_id="tester")
        await desk.send("desk", "subscribe", after=0, kinds=["task.*"], request_id=number)
    heard: list[Any] = []
    while len(heard) < 120:  # twenty replies, and ten events for each subscription
        heard.append(await desk.hear())
    for number in range(10):
        mine = [m["type"] for m in heard if m.get("request_id") == number]
        assert mine == ["subscribe_response"] + ["event"] * 10


@limited(feed_queue=10)
async def test_a_reader_that_is_too_slow_is_cut_off_and_nobody_waits_for_it(
    served: Served, talk: Talks, admit: Admit
) -> None:
    quick, slow = await admit("quick", role="planner"), await admit("slow", role="planner")
    sluggard = await talk("slow", slow.token)
    other = await talk("quick", quick.token)
    assert (await sluggard.say("slow", "subscribe", after=None, kinds=["task.*"]))["type"] == "subscribe_response"
    assert (await other.say("quick", "subscribe", after=None, kinds=["task.*"]))["type"] == "subscribe_response"
    sluggard.socket.transport.pause_reading()
    for _ in range(120):  # more than fits between both ends
        await served.workbench.store.write(lambda tx: tx.emit("task.noted", "task:1", note="x" * 100_000))
        assert (await other.hear())["type"] == "event"
    sluggard.socket.transport.resume_reading()
    last = (await hear_until(sluggard, "error"))[-1]
    assert (last["code"], last["action"]) == ("READER_TOO_SLOW", "subscribe")
    assert (await sluggard.say("slow", "ping"))["type"] == "ping_response"


async def test_a_subscription_can_be_ended_and_is_replaced_by_its_repetition(served: Served, line: Talk) -> None:
    for request_id in ("a", "a", "a", "b"):
        await line.say("ada", "subscribe", after=None, kinds=["task.*"], request_id=request_id)
    assert (await line.say("ada", "unsubscribe", subscription="b"))["data"] == {"ended": 1}
    await given.task(served.workbench, "One", "tester")
    assert (await line.hear())["request_id"] == "a"
    assert (await line.say("ada", "unsubscribe"))["data"] == {"ended": 1}


async def test_a_connection_has_a_limited_number_of_subscriptions(line: Talk) -> None:
    for _ in range(16):
        assert (await line.say("ada", "subscribe", after=None))["type"] == "subscribe_response"
    assert (await line.say("ada", "subscribe", after=None))["code"] == "TOO_MANY_SUBSCRIPTIONS"


NO_SUBSCRIPTIONS: list[dict[str, Any]] = [
    *({"tool_messages": 1}, {"kinds": []}, {"kinds": "task.*"}),
    *({"after": -1}, {"after": "x"}, {"mine": 5}, {"limit": 5}),
]


async def test_an_invalid_subscription_and_a_stranger_are_refused(line: Talk, talk: Talks) -> None:
    codes = [(await line.say("ada", "subscribe", **data)).get("code") for data in NO_SUBSCRIPTIONS]
    assert codes == ["INVALID_ARGUMENTS"] * len(NO_SUBSCRIPTIONS)
    assert (await (await talk("you")).say("you", "subscribe"))["code"] == "TOKEN_REQUIRED"
