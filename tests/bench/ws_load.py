"""WebSocket servers in children, and a client in a child of its own that keeps many connections busy."""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.bench.child import heard, orders, play, say
from tests.bench.project import SESSION
from workbench.state.settings import Settings

PAYLOAD = {"resource_type": "contexts", "content": {"title": "A finding", "content": "x" * 200}}


def more_files() -> None:
    """As many open files as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def workbench_server(root: str) -> None:
    """Serve a project from a kernel's thread, and answer what is asked of the process itself."""
    from kernel_ext.hosting.host import KernelHost

    more_files()
    host = KernelHost(
        Settings(
            project=Path(root),
            port=0,
            max_pending_agents=5_000,
            max_pending_per_address=5_000,
            max_in_flight=64,
            max_messages_per_second=1_000_000,
            max_anonymous_requests_per_minute=1_000_000,
        )
    )
    info = host.start(0)
    say({"url": info.ws_url})
    for order in heard():
        if order == "memory":
            say(psutil.Process().memory_info().rss)
        elif order == "admit":
            waiting = host.call("list_approvals", limit=1)["approvals"]
            numbers = [waiting[0]["id"] + n for n in range(host.call("get_performance")["pending_agents"])]
            say(host.call("approve_many", approval_ids=numbers, choices={"session_id": SESSION})["decisions"])
        elif order == "contexts":
            say(_contexts(host))
    host.stop()


def _contexts(host: Any) -> list[int]:
    """The sequence numbers of every context there is."""
    numbers: list[int] = []
    cursor = None
    while True:
        page = host.call("read", resource_type="contexts", limit=500, cursor=cursor)
        numbers += [row["sequence_number"] for row in page["data"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return numbers


def echo_server() -> None:
    """The raw limit: JSON in, JSON out, by the `websockets` library in a thread."""

    async def echo(socket: ServerConnection) -> None:
        async for text in socket:
            agent, action, data = json.loads(text)
            await socket.send(json.dumps({"type": action, "agent": agent, "request_id": data["request_id"]}))

    async def run() -> None:
        async with serve(echo, "127.0.0.1", 0, compression=None, max_size=2**20) as server:
            say({"url": f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"})
            await asyncio.Event().wait()

    more_files()
    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    sys.stdin.read()


class Peer:
    """One connection with requests under way, each answered by its id."""

    def __init__(self, socket: ClientConnection, agent: str) -> None:
        self.socket = socket
        self.agent = agent
        self.latencies: list[float] = []
        self._asked = 0

    async def ask(self, action: str, data: dict[str, Any]) -> dict[str, Any]:
        """One request and its answer; news in between is dropped."""
        self._asked += 1
        number = self._asked
        await self.socket.send(json.dumps([self.agent, action, {**data, "request_id": number}]))
        while True:
            reply: dict[str, Any] = json.loads(await self.socket.recv())
            if reply.get("request_id") == number:
                if reply["type"] == "error":
                    raise RuntimeError(str(reply))
                return reply

    async def write_some(self, messages: int, under_way: int) -> None:
        """Keep `under_way` writes going until so many are answered; how long each took is kept."""
        began: dict[int, float] = {}

        async def send() -> None:
            self._asked += 1
            began[self._asked] = time.perf_counter()
            await self.socket.send(json.dumps([self.agent, "write", {**PAYLOAD, "request_id": self._asked}]))

        for _ in range(min(under_way, messages)):
            await send()
        sent = len(began)
        while began:
            reply = json.loads(await self.socket.recv())
            started = began.pop(reply.get("request_id"), None)
            if started is None:
                continue
            if reply["type"] == "error":
                raise RuntimeError(str(reply))
            self.latencies.append(time.perf_counter() - started)
            if sent < messages:
                sent += 1
                await send()


async def opened(url: str, tokens: Sequence[tuple[str, str]]) -> list[Peer]:
    """A connection for each agent, authenticated if it has a token."""

    async def one(agent: str, token: str) -> Peer:
        peer = Peer(await connect(f"{url}/{agent}", compression=None, max_queue=None, ping_interval=None), agent)
        if token:
            await peer.socket.recv()  # the prompt
            await peer.ask("authenticate", {"agent_id": agent, "token": token})
        return peer

    return [peer for some in _chunks(tokens, 50) for peer in await asyncio.gather(*(one(*pair) for pair in some))]


def _chunks(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def p99(latencies: Sequence[float]) -> float:
    """99th percentile, in milliseconds."""
    return statistics.quantiles(latencies, n=100, method="inclusive")[-1] * 1e3


async def load() -> None:
    """In the child: connect on the first order, then a burst of writes for each further one."""
    more_files()
    told = orders()
    order = await anext(told)
    peers = await opened(order["url"], order["tokens"])
    say("connected")
    async for burst in told:
        for peer in peers:
            peer.latencies.clear()
        started = time.perf_counter()
        await asyncio.gather(*(peer.write_some(burst["messages"], burst["under_way"]) for peer in peers))
        seconds = time.perf_counter() - started
        latencies = [latency for peer in peers for latency in peer.latencies]
        say({"rate": len(latencies) / seconds, "p99": p99(latencies)})
    await asyncio.gather(*(peer.socket.close() for peer in peers))


async def hold(seconds: str) -> None:
    """In the child: connect and claim a task each on the first order; renew the leases until the next one."""
    told = orders()
    order = await anext(told)
    peers = await opened(order["url"], order["tokens"])
    tasks = [(await peer.ask("claim_task", {}))["data"]["task"]["id"] for peer in peers]
    say("claimed")
    is_over = asyncio.Event()
    holders = [asyncio.create_task(_hold(*pair, float(seconds), is_over)) for pair in zip(peers, tasks, strict=True)]
    await anext(told)
    is_over.set()
    ends = await asyncio.gather(*holders)
    say(
        {
            "lost": sum(not holds for holds in ends),
            "dropped": sum(peer.socket.close_code is not None for peer in peers),
            "slowest": max(latency for peer in peers for latency in peer.latencies) * 1e3,
        }
    )
    await asyncio.gather(*(peer.socket.close() for peer in peers))


async def _hold(peer: Peer, task: int, seconds: float, is_over: asyncio.Event) -> bool:
    """Send heartbeats until it is over; whether the task is held to the last."""
    holds = True
    while holds and not is_over.is_set():
        started = time.perf_counter()
        try:
            holds = task in (await peer.ask("heartbeat", {}))["data"]["holding"]
        except ConnectionClosed:
            return False
        peer.latencies.append(time.perf_counter() - started)
        with suppress(TimeoutError):
            await asyncio.wait_for(is_over.wait(), seconds)
    return holds


if __name__ == "__main__":
    play(workbench=workbench_server, echo=echo_server, load=load, hold=hold)
