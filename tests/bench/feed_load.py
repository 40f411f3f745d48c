"""The feed over WebSockets: a server that emits events, and a client that follows them on many connections.

The client reads frames by hand, because it shares the machine with the server that is measured.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.frames import Frame
from websockets.protocol import State
from websockets.uri import parse_uri

from tests.bench.child import orders, play, say
from tests.bench.ws_load import more_files
from workbench.app import Workbench
from workbench.shells.serve import Servers
from workbench.state.settings import Settings
from workbench.store.base import Tx

EVENTS_PER_SECOND = 1_000
LATE_SECONDS = 10.0
"""How long a reader may take for the last events."""
TICK = 0.005
"""Events are emitted so often, some at a time, as agents at work emit them."""
KINDS = ("task.*", "tool.*")
_EMITTED = re.compile(rb'"emitted":([0-9.]+)')


async def emit(workbench: Workbench, seconds: float) -> int:
    """Emit events at a steady rate, whatever it takes the others; how many."""
    began, emitted = time.monotonic(), 0
    while (elapsed := time.monotonic() - began) < seconds:
        due = int(elapsed * EVENTS_PER_SECOND) - emitted
        if due > 0:
            at = time.monotonic()
            await workbench.store.write(lambda tx, due=due, at=at, first=emitted: _emit_some(tx, first, due, at))
            emitted += due
        await asyncio.sleep(TICK)
    return emitted


def _emit_some(tx: Tx, first: int, count: int, at: float) -> None:
    """In turn the progress of a task, a tool that starts, and one that ends."""
    for number in range(first, first + count):
        call = {"call_id": f"call-{number}", "tool_name": "github__search_issues", "source": "mcp", "server": "github"}
        match number % 3:
            case 0:
                tx.emit("task.progressed", "task:1", progress=40, note="Half of the tests pass", emitted=at)
            case 1:
                tx.emit("tool.started", f"tool_call:{number}", **call, tool_input='{"query":"is:open"}', emitted=at)
            case _:
                result = {"tool_result": "x" * 100, "is_error": False, "duration_ms": 12.5}
                tx.emit("tool.completed", f"tool_call:{number}", **call, **result, emitted=at)


async def serve(root: str) -> None:
    """Serve a project; for each order emit events for so many seconds, and answer what that took."""
    more_files()
    process = psutil.Process()
    async with Workbench.open(Settings(project=Path(root), port=0)) as workbench, Servers(workbench) as servers:
        info = await servers.start()
        say({"url": info.ws_url, "token": workbench.operator_token})
        async for order in orders():
            before, cpu, began = process.memory_info().rss, sum(process.cpu_times()[:2]), time.monotonic()
            emitted = await emit(workbench, order["seconds"])
            busy = (sum(process.cpu_times()[:2]) - cpu) / (time.monotonic() - began) * 100
            say({"gained": max(process.memory_info().rss - before, 0), "cpu": busy, "emitted": emitted})


class Follower(asyncio.Protocol):
    """One connection that takes every event as it comes; notes how long after its emission, and whether it ended."""

    def __init__(self, latencies: list[float]) -> None:
        self._latencies = latencies
        self._rest = b""
        self.received = 0

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        now, data = time.monotonic(), self._rest + data
        at, end = 0, len(data)
        while end - at >= 4:
            length = data[at + 1]
            start = at + (4 if length == 126 else 2)
            length = int.from_bytes(data[at + 2 : start], "big") if length == 126 else length
            if end < start + length:
                break
            match = _EMITTED.search(data, start, start + length)
            if match is not None:
                self.received += 1
                self._latencies.append(now - float(match[1]))
            at = start + length
        self._rest = data[at:]


def connect(url: str, token: str) -> socket.socket:
    """A socket that follows the feed."""
    uri = parse_uri(f"{url}/follower")
    sock = socket.create_connection((uri.host, uri.port))
    sock.settimeout(30)
    protocol = ClientProtocol(uri)
    request = protocol.connect()
    request.headers.update(Headers(Authorization=f"Bearer {token}"))
    protocol.send_request(request)
    _send(sock, protocol)
    while protocol.state is not State.OPEN:
        protocol.receive_data(sock.recv(65_536))
    protocol.send_text(json.dumps(["follower", "subscribe", {"kinds": KINDS, "request_id": 1}]).encode())
    _send(sock, protocol)
    answers: list[Any] = []
    while not any(isinstance(answer, Frame) and b"subscribe_response" in answer.data for answer in answers):
        protocol.receive_data(sock.recv(65_536))
        answers += protocol.events_received()
    sock.setblocking(False)
    return sock


def _send(sock: socket.socket, protocol: ClientProtocol) -> None:
    sock.sendall(b"".join(protocol.data_to_send()))


async def follow() -> None:
    """Connect on the first order, all but one reading. Each further one is a number of events: answer what has come of
    them."""
    more_files()
    told = orders()
    order = await anext(told)
    latencies: list[float] = []
    loop = asyncio.get_running_loop()
    stalled, *reading = [
        await asyncio.to_thread(connect, order["url"], order["token"]) for _ in range(order["subscribers"])
    ]
    followers = [(await loop.create_connection(lambda: Follower(latencies), sock=sock))[1] for sock in reading]
    say("connected")
    async for expected in told:
        deadline = time.monotonic() + LATE_SECONDS
        while min(follower.received for follower in followers) < expected and time.monotonic() < deadline:
            await asyncio.sleep(TICK)
        say(_figures(latencies, [follower.received for follower in followers]))
        latencies.clear()
        for follower in followers:
            follower.received = 0
    stalled.close()


def _figures(latencies: Sequence[float], received: Sequence[int]) -> dict[str, float]:
    p99 = statistics.quantiles(latencies, n=100)[-1] * 1e3 if len(latencies) > 1 else 0.0
    return {"p99": p99, "received": sum(received), "least": min(received)}


if __name__ == "__main__":
    play(serve=serve, follow=follow)
