"""Limits of the WebSocket: connections, idleness, registrations and floods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.conftest import Admit, Served, Talks, limited
from tests.shells.websocket.conftest import accepted, closed, why_not
from workbench.client import HttpClient, McpClient

pytestmark = pytest.mark.anyio


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


async def test_a_websocket_at_another_path_is_refused_with_a_code(served: Served) -> None:
    for path in ("/ws", "/ws/", "/ws/a/b", "/wss/a", "/api/events", "/mcp", "/"):
        with pytest.raises(InvalidStatus) as caught:
            await connect(served.info.url.replace("http", "ws") + path)
        assert why_not(caught.value) == (404, "NO_SUCH_ENDPOINT"), path


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


@pytest.mark.long
@limited(idle_anonymous_seconds=1)
async def test_a_client_that_neither_registers_nor_authenticates_is_disconnected(
    served: Served, talk: Talks, admit: Admit
) -> None:
    ada = await admit("ada")
    waiting = await talk("waiting")
    await waiting.say("waiting", "register", name="Eve")
    known, idle = await talk("known", ada.token), await talk("idle")
    assert await closed(idle) == (1008, "IDLE")
    assert await closed(await talk("later")) == (1008, "IDLE")
    for line in (waiting, known):
        assert (await line.say("ada" if line is known else "waiting", "ping"))["type"] == "ping_response"


@limited(max_pending_per_address=3)
async def test_repeated_frames_are_answered_again_and_registrations_are_limited(talk: Talks, admit: Admit) -> None:
    ada = await admit("ada")
    line = await talk()
    for number in range(3):
        assert (await line.say("me", "ping", request_id=1))["request_id"] == 1
        assert (await line.say("me", "authenticate", token=ada.token, request_id=2))["agent_id"] == "ada"
        assert (await line.say("me", "register", name="Eve", request_id=[number]))["type"] == "registration_success"
    assert (await line.say("me", "register", name="Eve"))["code"] == "TOO_MANY_PENDING"


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("way", ["websocket", "http", "mcp"])
async def test_two_hundred_agents_of_this_machine_may_register_at_once(served: Served, way: str) -> None:
    ways: dict[str, Callable[[], HttpClient | McpClient]] = {
        "http": lambda: HttpClient(served.info.url),
        "mcp": lambda: McpClient(served.info.mcp_url),
    }

    async def register(number: int) -> None:
        if way == "websocket":
            async with connect(f"{served.info.ws_url}/{number}") as socket:
                await socket.recv()
                await socket.send(json.dumps(["me", "register", {"name": "Ada"}]))
                assert json.loads(await socket.recv())["type"] == "registration_success"
            return
        async with ways[way]() as client:
            assert (await client.call("register", name="Ada"))["status"] == "pending"

    await asyncio.gather(*[register(number) for number in range(200)])
    waiting = (await served.workbench.call("list_approvals", limit=500))["approvals"]
    assert len(waiting) == 200


@limited(max_messages_per_second=20)
async def test_a_client_that_floods_is_disconnected_with_a_code(served: Served, talk: Talks) -> None:
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
