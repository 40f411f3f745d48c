"""B17: the feed under load: many subscribers, one of them stalled, and a thousand events a second.

The subscribers are first in the process itself, then WebSockets of another one.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import psutil

from tests.bench.child import Child, heard, say
from tests.bench.feed_load import EVENTS_PER_SECOND, KINDS, emit
from tests.bench.project import opened, scratch
from tests.bench.rows import Row, Samples, within
from workbench.errors import Unavailable
from workbench.store.feed import FeedSubscription

SUBSCRIBERS = 200
SECONDS = 30.0
FLAT_BYTES = 16 * 2**20


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Each round in a process of its own, first the feed alone, then with a WebSocket for each subscriber."""
    seconds = 1.0 if quick else SECONDS
    subscribers = 20 if quick else SUBSCRIBERS
    made, sent = [], []
    for _ in range(1 if quick else min(rounds, 3)):
        with scratch() as directory, Child("b17", str(directory / "project")) as child:
            made.append(child.ask({"subscribers": subscribers, "seconds": seconds}))
        with scratch() as directory:
            sent.append(over_sockets(directory / "project", subscribers, seconds))
    note = f"{subscribers} subscribers, {EVENTS_PER_SECOND:,} events/s for {seconds:g} s, one stalled"
    return {
        "p99 of an event": Samples([m["p99"] for m in made], unit="ms", note=note),
        "memory gained": Samples([m["gained"] / 2**20 for m in made], unit="MB"),
        "CPU of the process": Samples([m["cpu"] for m in made], unit="% of a core"),
        "p99 over WebSockets": Samples([m["p99"] for m in sent], unit="ms", note="two thirds are events of tools"),
        "memory gained with WebSockets": Samples([m["gained"] / 2**20 for m in sent], unit="MB"),
        "CPU with WebSockets": Samples([m["cpu"] for m in sent], unit="% of a core"),
    }


def over_sockets(root: Path, subscribers: int, seconds: float) -> dict[str, float]:
    """One round with sockets: the server in a process, its clients in another. Who was cut off has waited forever."""
    with Child("feed_load", "serve", str(root)) as server, Child("feed_load", "follow") as client:
        client.ask({**server.hear(), "subscribers": subscribers})
        for period in (0.2 * seconds, seconds):  # queues and caches have their size after the first
            served = server.ask({"seconds": period})
            received = client.ask(served["emitted"])
    was_cut_off = received["least"] < served["emitted"]
    return {**received, **served} | ({"p99": math.inf} if was_cut_off else {})


async def follow(events: FeedSubscription, latencies: list[float]) -> None:
    """Take every event as it comes; how long after its emission is noted."""
    async for event in events:
        latencies.append(time.monotonic() - event.data["emitted"])  # noqa: PERF401 (each counts when it comes)


async def measure(root: Path, subscribers: int, seconds: float) -> dict[str, float]:
    """One round."""
    process, latencies = psutil.Process(), list[float]()
    async with opened(root) as workbench, AsyncExitStack() as stack:
        stalled = await stack.enter_async_context(workbench.feed.subscribe(*KINDS))
        readers = [
            asyncio.create_task(follow(await stack.enter_async_context(workbench.feed.subscribe(*KINDS)), latencies))
            for _ in range(subscribers - 1)
        ]
        emitted = await emit(workbench, 0.2 * seconds)  # queues and caches have their size then
        before, cpu = process.memory_info().rss, sum(process.cpu_times()[:2])
        latencies.clear()
        began = time.monotonic()
        emitted += await emit(workbench, seconds)
        cpu = (sum(process.cpu_times()[:2]) - cpu) / (time.monotonic() - began) * 100
        gained = process.memory_info().rss - before - sys.getsizeof(latencies) - 32 * len(latencies)
        while emitted <= workbench.settings.feed_queue:  # a busy machine emits fewer
            emitted += await emit(workbench, 0.2 * seconds)
        await is_cut_off(stalled)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    return {"p99": statistics.quantiles(latencies, n=100)[-1] * 1e3, "gained": max(gained, 0), "cpu": cpu}


async def is_cut_off(stalled: FeedSubscription) -> None:
    """The one that read nothing has been let go of."""
    try:
        while True:
            async with asyncio.timeout(1):
                await anext(stalled)
    except Unavailable:
        return


if __name__ == "__main__":
    for order in heard():
        say(asyncio.run(measure(Path(sys.argv[1]), order["subscribers"], order["seconds"])))


ROW = Row(
    id="B17",
    work="the feed: events, most of them of tools, from their emission to every subscriber",
    counterpart="–",
    bars={
        "p99 of an event": within(200, "ms"),
        "memory gained": within(FLAT_BYTES / 2**20, "MB"),
        "p99 over WebSockets": within(200, "ms"),
        "memory gained with WebSockets": within(FLAT_BYTES / 2**20, "MB"),
    },
    run=run,
)
