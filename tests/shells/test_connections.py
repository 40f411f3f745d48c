"""Connections that wait, stall or are too many: they are closed or refused, and others are served all the while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import httpx2
import psutil
import pytest

from tests.conftest import Admit, Served, Talk, Talks, limited
from tests.shells.conftest import Visit, error_of
from tests.shells.mcp.test_server import open_session, plain_http
from tests.shells.test_serve import port_of
from tests.shells.websocket.conftest import gone

pytestmark = pytest.mark.anyio

HEAD = b"POST /api/ops/ping HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n"
UPGRADE = b"GET /ws/me HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"


class Raw:
    """A connection that sends and reads as a test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def rest(self) -> bytes:
        """Everything that is received until the server closes."""
        with suppress(ConnectionError):
            return await self.reader.read()
        return b""


Dial = Callable[..., Any]


@pytest.fixture
async def dial(served: Served) -> AsyncIterator[Dial]:
    """`await dial(data)`: a bare connection that has sent some bytes."""
    async with AsyncExitStack() as stack:

        async def connected(data: bytes = b"") -> Raw:
            # A small limit: what a test does not read stays with the server.
            raw = Raw(*await asyncio.open_connection("127.0.0.1", port_of(served.info.url), limit=1))
            stack.callback(lambda: raw.writer.transport.abort())
            await raw.send(data)
            return raw

        yield connected


def open_connections(served: Served) -> int:
    """The server's ends of the connections to it."""
    port = port_of(served.info.url)
    sockets = psutil.Process().net_connections("tcp")
    return sum(c.laddr.port == port and c.status != psutil.CONN_LISTEN for c in sockets if c.fd != -1)


async def closed(served: Served) -> None:
    while open_connections(served):
        await asyncio.sleep(0.01)


# Handshakes


@limited(handshake_seconds=0.3)
async def test_a_request_that_is_never_complete_or_comes_byte_by_byte_is_given_up(dial: Dial) -> None:
    silent = [await dial(sent) for sent in (b"", b"GET /hea", UPGRADE, HEAD + b"\r\n{")]
    assert [await one.rest() for one in silent] == [b""] * len(silent)
    slow = await dial(HEAD)
    ended = asyncio.create_task(slow.rest())
    with suppress(ConnectionError):
        while not ended.done():
            await slow.send(b"X: y\r\n")
            await asyncio.sleep(0.02)
    assert await ended == b""


@pytest.mark.long
@limited(handshake_seconds=1.5)  # long enough for a busy machine to send a request
async def test_a_slow_answer_an_open_websocket_and_an_idle_client_are_not_given_up(
    talk: Talks, operator: httpx2.AsyncClient, dial: Dial
) -> None:
    line, idle = await talk("me"), await dial()
    assert (await operator.get("/health")).status_code == 200
    await idle.rest()  # which takes longer than a handshake may
    assert (await line.say("me", "ping"))["type"] == "ping_response"
    waited = await operator.post("/api/ops/list_events", json={"after": 10_000, "wait_seconds": 2})
    assert waited.json()["data"]["events"] == []


# Too many


@limited(max_handshakes=5)
async def test_the_oldest_connection_without_a_request_makes_room_for_a_new_one(
    visit: Visit, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    crowd = [await dial() for _ in range(5)]
    assert (await visit().get("/health")).status_code == 200
    assert await crowd[0].rest() == b""
    more = [await dial(HEAD + b"\r\n{") for _ in range(20)]
    assert (await visit().get("/health")).status_code == 200
    for raw in crowd + more[:14]:
        assert await raw.rest() == b""
    await more[-1].send(b"}")
    assert await more[-1].reader.read(15) == b"HTTP/1.1 200 OK"
    assert caplog.text.count("wait for a request") == 1


@limited(max_connections=2)
async def test_at_the_limit_requests_are_refused_but_not_the_operator_s_nor_health_checks(
    served: Served, talk: Talks, visit: Visit, admit: Admit, caplog: pytest.LogCaptureFixture
) -> None:
    ada = await admit("ada")
    lines = [await talk("one", ada.token), await talk("two", ada.token)]
    for _ in range(3):
        assert error_of(await visit(ada.token).get("/agents")) == (503, "TOO_MANY_CONNECTIONS")
    assert (await visit().get("/health")).status_code == 200
    assert (await visit(served.workbench.operator_token).get("/agents")).status_code == 200
    assert caplog.text.count("connections are served") == 1
    for line in lines:
        await line.socket.close()
    while (await visit(ada.token).get("/agents")).status_code != 200:
        await asyncio.sleep(0.01)


# Readers that do not read


async def stalled_events(dial: Dial, token: str, path: str = "/api/events?after=0", **more: str) -> Raw:
    fields = {"Host": "127.0.0.1", "Authorization": f"Bearer {token}", "Accept": "text/event-stream", **more}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    raw: Raw = await dial(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
    assert await raw.reader.read(15) == b"HTTP/1.1 200 OK"
    return raw


async def many_events(served: Served) -> None:
    """More than the buffers of a connection hold."""
    for _ in range(120):
        await served.workbench.store.write(lambda tx: tx.emit("task.noted", "task:1", note="x" * 100_000))


@limited(stalled_seconds=0.3)
async def test_a_stream_or_an_answer_that_is_not_read_is_cut_off(served: Served, dial: Dial, admit: Admit) -> None:
    await many_events(served)
    await stalled_events(dial, (await admit("ada", role="planner")).token)
    await gone(served, times=1)
    await closed(served)
    token = served.workbench.operator_token
    await dial(f"GET /api/events?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    while not open_connections(served):
        await asyncio.sleep(0)
    await closed(served)


@pytest.mark.long
@limited(stalled_seconds=1)
async def test_a_stream_that_is_read_slowly_goes_on(served: Served, dial: Dial, admit: Admit) -> None:
    ada = await admit("ada", role="planner")
    await many_events(served)
    raw, last = await stalled_events(dial, ada.token), b""
    await served.workbench.store.write(lambda tx: tx.emit("task.noted", "task:1", note="the last"))
    while b"the last" not in last:
        more = await raw.reader.read(1_000_000)
        assert more
        last = last[-100:] + more
        await asyncio.sleep(0.05)


async def unread(served: Served, line: Talk) -> None:
    """Let more come to a WebSocket than its buffers hold, and do not read it."""
    await line.say("ada", "subscribe", after=None, kinds=["task.*"])
    line.socket.transport.pause_reading()
    await many_events(served)


@limited(stalled_seconds=0.3)
async def test_a_websocket_that_is_closed_without_being_read_is_cut_off(
    served: Served, talk: Talks, admit: Admit
) -> None:
    line = await talk("me", (await admit("ada", role="planner")).token)
    await unread(served, line)
    await served.workbench.call("revoke_agent", agent_id="ada")
    await closed(served)
    line.socket.transport.abort()


@limited(max_unsent_bytes=1_000_000)
async def test_a_client_that_pings_and_does_not_read_is_cut_off(served: Served, dial: Dial) -> None:
    raw = await dial(UPGRADE + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
    assert await raw.reader.read(12) == b"HTTP/1.1 101"
    ping = b"\x89\xfd\0\0\0\0" + bytes(125)
    with pytest.raises(ConnectionError):
        while True:
            await raw.send(1_000 * ping)
    await closed(served)


# The end


@pytest.mark.parametrize("stream", ["events", "session"])
async def test_the_servers_stop_though_a_stream_is_not_read(
    served: Served, dial: Dial, admit: Admit, stream: str
) -> None:
    ada = await admit("ada", role="planner")
    if stream == "events":
        await many_events(served)
        await stalled_events(dial, ada.token)
    else:
        async with plain_http(served) as http:
            session_id = (await open_session(http, ada.token))["Mcp-Session-Id"]
        await stalled_events(dial, ada.token, "/mcp", **{"Mcp-Session-Id": session_id})
    await served.servers.stop()
    assert open_connections(served) == 0


async def test_the_servers_stop_though_a_websocket_says_goodbye_and_is_not_read(
    served: Served, talk: Talks, admit: Admit
) -> None:
    line = await talk("me", (await admit("ada", role="planner")).token)
    await unread(served, line)
    socket = line.socket
    socket.protocol.send_close(1000)
    socket.transport.write(b"".join(socket.protocol.data_to_send()))
    await served.servers.stop()
    assert open_connections(served) == 0
    socket.transport.abort()
