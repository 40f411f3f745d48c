"""B17: the feed under load: many subscribers, one of them stalled, and a thousand events a second."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import psutil

from tests.bench.child import Child, heard, say
from tests.bench.project import opened, scratch
from tests.bench.rows import Bar, Row, Samples, within
from workbench.app import Workbench
from workbench.errors import Unavailable
from workbench.store.feed import Subscription

SUBSCRIBERS = 200
EVENTS_PER_SECOND = 1_000
SECONDS = 30.0
TICK = 0.005
"""Events are emitted so often, some at a time, as agents at work emit them."""
FLAT_BYTES = 16 * 2**20


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Each round in a process of its own: the feed, its subscribers, and nothing else."""
    seconds = 1.0 if quick else SECONDS
    subscribers = 20 if quick else SUBSCRIBERS
    made = []
    for _ in range(1 if quick else min(rounds, 3)):
        with scratch() as directory, Child("b17", str(directory / "project")) as child:
            child.tell({"subscribers": subscribers, "seconds": seconds})
            made.append(child.hear())
    note = f"{subscribers} subscribers, {EVENTS_PER_SECOND:,} events/s for {seconds:g} s, one stalled"
    return {
        "p99 of an event": Samples([m["p99"] for m in made], unit="ms", note=note),
        "memory gained": Samples([m["gained"] / 2**20 for m in made], unit="MB"),
        "CPU of the process": Samples([m["cpu"] for m in made], unit="% of a core"),
    }


async def follow(events: Subscription, latencies: list[float]) -> None:
    """Take every event as it comes; how long after its emission is noted."""
    async for event in events:
        latencies.append(time.monotonic() - event.data["at"])  # noqa: PERF401 (each counts when it comes)


async def emit(workbench: Workbench, seconds: float) -> None:
    """Emit events at a steady rate, whatever it takes the others."""
    began, emitted = time.monotonic(), 0
    while (elapsed := time.monotonic() - began) < seconds:
        due = int(elapsed * EVENTS_PER_SECOND) - emitted
        if due > 0:
            at = time.monotonic()
            await workbench.store.write(
                lambda tx, due=due, at=at: [tx.emit("task.progressed", "task:1", at=at) for _ in range(due)]
            )
            emitted += due
        await asyncio.sleep(TICK)


async def measure(root: Path, subscribers: int, seconds: float) -> dict[str, float]:
    """One round."""
    process, latencies = psutil.Process(), list[float]()
    async with opened(root) as workbench, AsyncExitStack() as stack:
        stalled = await stack.enter_async_context(workbench.feed.subscribe("task.*"))
        readers = [
            asyncio.create_task(follow(await stack.enter_async_context(workbench.feed.subscribe("task.*")), latencies))
            for _ in range(subscribers - 1)
        ]
        await emit(workbench, 0.2 * seconds)  # queues and caches have their size then
        before, cpu = process.memory_info().rss, sum(process.cpu_times()[:2])
        latencies.clear()
        began = time.monotonic()
        await emit(workbench, seconds)
        cpu = (sum(process.cpu_times()[:2]) - cpu) / (time.monotonic() - began) * 100
        gained = process.memory_info().rss - before - sys.getsizeof(latencies) - 32 * len(latencies)
        await is_cut_off(stalled)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    return {"p99": statistics.quantiles(latencies, n=100)[-1] * 1e3, "gained": max(gained, 0), "cpu": cpu}


async def is_cut_off(stalled: Subscription) -> None:
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
    work="the feed: events from their emission to every subscriber of the process",
    counterpart="–",
    bars={
        "p99 of an event": within(200, "ms"),
        "memory gained": Bar(lambda s: s.best, FLAT_BYTES / 2**20, at_least=False, unit="MB"),
    },
    run=run,
)
