"""B10: how soon a waiting agent is told of a task, and what waiting costs."""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests import hosts
from tests.bench.child import Child, orders, play, say
from tests.bench.project import Running, identify, opened, prepare, running, scratch
from tests.bench.rows import Row, Samples, take_turns, within
from tests.postgres import SUPERUSER, installed, running_server
from workbench.app import Workbench
from workbench.ops import Caller

CROWD = 200
ANOTHER_HOST = "another host on PostgreSQL, p95"
WAIT = {"wait_seconds": 30}


async def create(workbench: Workbench) -> float:
    """Let some time pass, so that every phase of a poll occurs, then create a task; when that began."""
    await asyncio.sleep(random.uniform(0.05, 0.15))
    began = time.monotonic()
    await workbench.call("create_task", title="Something to do", persona_id="implementer")
    return began


async def told(workbench: Workbench, caller: Caller) -> float:
    """Wait for a task; when that was answered. The task is done then, so that there is none again."""
    work = await workbench.dispatch(caller, "heartbeat_and_get_tasks", WAIT)
    at = time.monotonic()
    assert work["available"], "nothing came in time"
    return at


async def do(workbench: Workbench, caller: Caller) -> None:
    """Claim what there is and complete it."""
    claim = await workbench.dispatch(caller, "claim_task", {})
    await workbench.dispatch(caller, "complete_task", {"task_id": claim["task"]["id"]})


async def here(workbench: Workbench, callers: Sequence[Caller]) -> float:
    """Milliseconds until the last of some agents of this process is told."""
    waiting = [asyncio.create_task(told(workbench, caller)) for caller in callers]
    began = await create(workbench)
    last = max(await asyncio.gather(*waiting))
    await do(workbench, callers[0])
    return (last - began) * 1e3


async def there(workbench: Workbench, child: Child) -> float:
    """Milliseconds until an agent of another process is told."""
    child.tell("wait")
    began = await create(workbench)
    at = await asyncio.to_thread(child.hear)
    await asyncio.to_thread(child.hear)
    return float(at - began) * 1e3


def p95(project: Running, times: int, once: Callable[[Workbench], Awaitable[float]]) -> float:
    """95th percentile of some trials."""

    async def all_of_them() -> list[float]:
        return [await once(project.workbench) for _ in range(times)]

    return statistics.quantiles(project.run(all_of_them()), n=20, method="inclusive")[-1]


def busy(pid: int, seconds: float) -> float:
    """Percent of one core that a process uses."""
    process = psutil.Process(pid)
    before = sum(process.cpu_times()[:2])
    time.sleep(seconds)
    return (sum(process.cpu_times()[:2]) - before) / seconds * 100


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Latencies count from the call that creates the task, its commit included."""
    times, seconds = (5, 1) if quick else (60, 5)
    measured = _on_one_machine(rounds, times, seconds)
    binaries = installed()
    if binaries is not None and hosts.are_possible():
        measured[ANOTHER_HOST] = _on_two_hosts(rounds, times, binaries)
    return measured


def _on_one_machine(rounds: int, times: int, seconds: float) -> dict[str, Samples]:
    with scratch() as directory:
        seed = prepare(directory / "seed", agents=CROWD, tasks=0)
        with (
            Child("b10", "one", str(seed.root), "", seed.tokens[1]) as other,
            Child("b10", "crowd", str(seed.copy(directory / "crowd")), *seed.tokens) as crowd,
            running(seed.root, seed.tokens) as project,
        ):
            other.hear()
            crowd.hear()
            turns = take_turns(
                rounds,
                here=lambda: p95(project, times, lambda workbench: here(workbench, project.callers[:1])),
                there=lambda: p95(project, times, partial(there, child=other)),
                crowd=lambda: p95(project, max(times // 6, 2), lambda workbench: here(workbench, project.callers)),
                busy=lambda: busy(crowd.pid, seconds),
            )
    return {
        "same process, p95": Samples(turns["here"], unit="ms"),
        "other process, p95": Samples(turns["there"], unit="ms"),
        f"CPU while {CROWD} wait": Samples(turns["busy"], unit="% of a core"),
        f"same process, the last of {CROWD}, p95": Samples(turns["crowd"], unit="ms"),
    }


def _on_two_hosts(rounds: int, times: int, binaries: Path) -> Samples:
    """This process and another have a clone each; the other one is on another host, as a network namespace is."""
    with scratch() as directory, hosts.network(directory) as network:
        (host,) = network.hosts("another")
        where: dict[str, Any] = {"entering": network.entering, "trusts": f"{hosts.PREFIX}.0/24"}
        with (
            running_server(binaries, f"listen_addresses={hosts.GATEWAY}", **where) as server,
            server.new_database() as database,
        ):
            url = f"postgresql://{SUPERUSER}@{hosts.GATEWAY}/{database}"
            seed = prepare(directory / "here", agents=2, tasks=0, database_url=server.url(database))
            (host.home / "there").mkdir()
            arguments = ("one", str(host.home / "there"), url, seed.tokens[1])
            with (
                Child("b10", *arguments, extra=host.environment, entering=host.entering) as other,
                running(seed.root, seed.tokens[:1], server.url(database)) as project,
            ):
                other.hear()
                turns = take_turns(rounds, there=lambda: p95(project, times, partial(there, child=other)))
    return Samples(turns["there"], unit="ms")


async def _one(root: str, database_url: str, *tokens: str) -> None:
    async with opened(Path(root), database_url or None) as workbench:
        (caller,) = await identify(workbench, tokens)
        say("ready")
        async for _ in orders():
            say(await told(workbench, caller))
            await do(workbench, caller)
            say("done")


async def _crowd(root: str, *tokens: str) -> None:
    async with opened(Path(root)) as workbench:

        async def wait(caller: Caller) -> None:
            while True:
                await workbench.dispatch(caller, "heartbeat_and_get_tasks", WAIT)

        waiting = [asyncio.create_task(wait(caller)) for caller in await identify(workbench, tokens)]
        say("ready")
        await asyncio.to_thread(sys.stdin.read)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


ROW = Row(
    "B10",
    "task created → waiting agent told",
    "–",
    {
        "same process, p95": within(250, "ms"),
        "other process, p95": within(250, "ms"),
        ANOTHER_HOST: within(250, "ms"),
        f"CPU while {CROWD} wait": within(5, "% of a core"),
    },
    run,
)

if __name__ == "__main__":
    play(one=_one, crowd=_crowd)
