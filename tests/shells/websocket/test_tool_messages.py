"""Calls of tools on a WebSocket, as the messages of spec 4."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from pydantic import BaseModel

from tests.conftest import Served, Talk

pytestmark = pytest.mark.anyio


class OldStart(BaseModel):
    """What a client reads that knows nothing of `source`, nor of what was added to it."""

    type: str
    tool_name: str
    tool_input: str
    timestamp: datetime


class OldComplete(BaseModel):
    """See `OldStart`."""

    type: str
    tool_name: str
    tool_result: str
    timestamp: datetime


async def call(served: Served, **arguments: Any) -> dict[str, Any]:
    return await served.workbench.call("call_tool", **arguments)


async def test_a_subscriber_gets_the_start_and_the_end_of_each_call(served: Served, desk: Talk) -> None:
    wanted = {"kinds": ["tool.*"], "after": None, "tool_messages": True, "request_id": "t"}
    assert (await desk.say("desk", "subscribe", **wanted))["type"] == "subscribe_response"
    made = await call(served, name="create_project", arguments={"name": "Atlas"})
    start, complete = await desk.hear(), await desk.hear()
    assert (start["type"], complete["type"]) == ("tool_start", "tool_complete")
    for one in (start, complete):
        assert (one["tool_name"], one["source"], one["server"]) == ("create_project", "local", None)
        assert (one["call_id"], one["request_id"]) == (made["call_id"], "t")
    assert json.loads(start["tool_input"]) == {"name": "Atlas"}
    assert json.loads(complete["tool_result"]) == made["result"]
    assert (complete["is_error"], complete["duration_ms"] >= 0) == (False, True)
    assert OldStart(**start).timestamp <= OldComplete(**complete).timestamp


async def test_a_subscription_continues_after_the_event_of_a_message(served: Served, desk: Talk) -> None:
    for _ in range(2):
        await call(served, name="list_tasks")
    await desk.say("desk", "subscribe", kinds=["tool.*"], after=0, tool_messages=True, request_id=1)
    messages = [await desk.hear() for _ in range(4)]
    await desk.say("desk", "unsubscribe", subscription=1)
    await desk.say(
        "desk", "subscribe", kinds=["tool.*"], after=messages[1]["event_id"], tool_messages=True, request_id=1
    )
    assert [await desk.hear() for _ in range(2)] == messages[2:]


async def test_without_a_tool_subscription_calls_come_as_ordinary_events(served: Served, desk: Talk) -> None:
    await desk.say("desk", "subscribe", kinds=["tool.*"], after=None)
    await call(served, name="list_tasks")
    first = await desk.hear()
    assert (first["type"], first["data"]["kind"]) == ("event", "tool.started")
