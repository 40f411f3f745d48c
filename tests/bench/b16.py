"""B16: a thousand agents at once: what an idle connection holds, and how long their writes take.

What an idle connection holds is what the server grows by while a thousand agents connect; a few have come and gone
before, so that what is only there once is not counted.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.bench.child import Child, orders, say
from tests.bench.project import in_session, prepare, scratch
from tests.bench.rows import Row, Samples, within
from tests.bench.ws_load import PAYLOAD, Peer, more_files, opened, p99

AGENTS = 1_000
FIRST = 50
CONTEXTS = 10
SPREAD_SECONDS = 5.0
"""The agents begin to write within this time of each other, and write one context after another."""


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Each round is a project of its own: register, admit in bulk, connect, write, read back, count."""
    agents = 30 if quick else AGENTS
    results = [_round(agents, 0.5 if quick else SPREAD_SECONDS) for _ in range(min(rounds, 2 if quick else 3))]
    return {
        "idle connection": Samples([held for held, _ in results], unit="KB"),
        "p99 of a write": Samples([slowest for _, slowest in results], unit="ms"),
    }


def _round(agents: int, spread: float) -> tuple[float, float]:
    with scratch() as directory:
        seed = in_session(prepare(directory / "seed", agents=1, tasks=0))
        with Child("ws_load", "workbench", str(seed.root)) as server, Child("b16") as crowd:
            crowd.ask({**server.hear(), "agents": agents, "spread": spread})
            before = server.ask("memory")
            crowd.ask("connect")
            held = (server.ask("memory") - before) / agents / 1024
            crowd.ask("register")
            decided = server.ask("admit")
            assert all(one["ok"] for one in decided), "somebody was not admitted"
            latencies = crowd.ask({one["approval_id"]: one["outcome"]["agent_id"] for one in decided})
            numbers = sorted(server.ask("contexts"))
    assert numbers == list(range(1, agents * CONTEXTS + 1)), "a context was lost, or a number given twice"
    return held, p99(latencies)


async def _crowd() -> None:
    more_files()
    told = orders()
    order = await anext(told)
    names = [(f"agent-{number}", "") for number in range(order["agents"])]
    await _leave(await opened(order["url"], names[:FIRST]))
    say("warm")
    await anext(told)
    peers = await opened(order["url"], names)
    say("connected")
    await anext(told)
    registered = await asyncio.gather(*(peer.ask("register", {"name": peer.agent}) for peer in peers))
    say("registered")
    ids = await anext(told)
    admitted = [(ids[str(one["approval_id"])], one["token"]) for one in registered]
    await asyncio.gather(*map(_enter, peers, admitted))
    await asyncio.gather(*(_work(peer, random.uniform(0, order["spread"])) for peer in peers))
    say([latency for peer in peers for latency in peer.latencies])
    await _leave(peers)


async def _enter(peer: Peer, admitted: tuple[str, str]) -> None:
    """Go on over the same connection with the id that was assigned."""
    agent_id, token = admitted
    await peer.ask("authenticate", {"agent_id": agent_id, "token": token})
    peer.agent = agent_id


async def _leave(peers: Sequence[Peer]) -> None:
    await asyncio.gather(*(peer.socket.close() for peer in peers))


async def _work(peer: Peer, after: float) -> None:
    """Write some contexts one after another, then read one's own back."""
    await asyncio.sleep(after)
    written: list[str] = []
    for _ in range(CONTEXTS):
        began = time.perf_counter()
        written.append((await peer.ask("write", PAYLOAD))["context_id"])
        peer.latencies.append(time.perf_counter() - began)
    _check(written, (await peer.ask("read", {"resource_type": "contexts", "limit": 2 * CONTEXTS}))["data"])


def _check(written: Sequence[str], found: Sequence[Mapping[str, Any]]) -> None:
    if sorted(row["id"] for row in found) != sorted(written):
        raise RuntimeError("what was written was not read back")


ROW = Row(
    "B16",
    f"{AGENTS:,} agents register, are admitted in bulk, connect, write {CONTEXTS} contexts each, read them back",
    "–",
    {"idle connection": within(60, "KB"), "p99 of a write": within(250, "ms")},
    run,
)

if __name__ == "__main__":
    asyncio.run(_crowd())
