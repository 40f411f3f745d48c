"""Clients of the WebSocket, and servers with the limits that a test asks for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from tests.conftest import Admit, Served, Talk, Talks
from workbench.store.base import Tx

WRONG = f"wba_{'x' * 43}"


@pytest.fixture
async def line(talk: Talks, admit: Admit) -> Talk:
    """The connection `me` of an agent, ada."""
    made: Talk = await talk("me", (await admit("ada")).token)
    return made


@pytest.fixture
async def desk(served: Served, talk: Talks) -> Talk:
    """The connection `desk` of the operator."""
    made: Talk = await talk("desk", served.workbench.operator_token)
    return made


async def closed(line: Talk) -> tuple[int, str]:
    """The code and reason with which the server closes the connection, after its last messages."""
    with pytest.raises(ConnectionClosedError) as caught:
        await hear_until(line, "nothing else")
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code, caught.value.rcvd.reason


async def hear_until(line: Talk, kind: str) -> list[dict[str, Any]]:
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


async def events_of(served: Served) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await served.workbench.call("list_events", limit=1_000))["events"]
    return listed


def why_not(refused: InvalidStatus) -> tuple[int, str]:
    """Status and code that a connection was refused with."""
    body = json.loads(refused.response.body or b"{}")
    assert body["success"] is False
    return refused.response.status_code, body["error"]["code"]


async def connections_of(served: Served, agent_id: str) -> tuple[str, int]:
    agent = await served.workbench.call("get_agent", agent_id=agent_id)
    return agent["status"], agent["connections"]


async def gone(served: Served, times: int) -> None:
    """Return once so many connections of agents have ended."""
    async with served.workbench.feed.subscribe("agent.disconnected", after=0) as events:
        for _ in range(times):
            await anext(events)


async def decide_others(served: Served, kind: str) -> None:
    """Twenty decisions at once, about other agents."""

    def throng(tx: Tx) -> None:
        for number in range(20):
            tx.emit(kind, f"agent:{number}")

    await served.workbench.store.write(throng)
