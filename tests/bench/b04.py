"""B4: claim and complete on PostgreSQL, 64 agents in one process, beside two queues on the same server.

Its data is on this machine's disk, with `fsync` and `synchronous_commit` on, as they are by default.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.bench import disk
from tests.bench.child import Child, orders, play, say
from tests.bench.postgres_peers import BATCH, PEERS
from tests.bench.project import check, drain, fill, identify, opened, prepare, scratch
from tests.bench.rows import Row, Samples, at_least, take_turns
from tests.postgres import installed, running_server

AGENTS = 64
TASKS = {"ours": 1_000, "pgqueuer": 8_000, "procrastinate": 1_000}
"""In a round: some seconds of work for each."""
QUICK = {"ours": 100, "pgqueuer": 400, "procrastinate": 100}
LINES = {"pgqueuer": f"beside pgqueuer in batches of {BATCH}", "procrastinate": "beside procrastinate"}


class Contestant(NamedTuple):
    """How tasks are added, and how all of them are claimed and completed."""

    fill: Callable[[int], Awaitable[None]]
    drain: Callable[[], Awaitable[list[int]]]


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Tasks claimed and completed a second, each contestant in a process and a database of its own."""
    binaries, tasks = installed(), QUICK if quick else TASKS
    assert binaries is not None
    with scratch() as directory, running_server(binaries) as server, ExitStack() as stack:
        urls = {name: server.url(stack.enter_context(server.new_database())) for name in tasks}
        seed = prepare(directory / "ours", agents=AGENTS, tasks=0, database_url=urls["ours"])
        more = {"ours": [str(seed.root), *seed.tokens]}
        children = {name: stack.enter_context(Child("b04", name, urls[name], *more.get(name, []))) for name in tasks}
        for child in children.values():
            child.hear()
        note = f"fsync {disk.fsync_seconds(directory) * 1000:.2f} ms"
        rates = take_turns(rounds, **{name: partial(children[name].ask, tasks[name]) for name in tasks})
    return {line: Samples(rates["ours"], rates[name], "tasks/s", name, note) for name, line in LINES.items()}


@asynccontextmanager
async def ours(url: str, root: str, *tokens: str) -> AsyncIterator[Contestant]:
    """The project; at the end nothing may be lost or doubled."""
    done: list[int] = []
    async with opened(Path(root), url) as workbench:
        callers = await identify(workbench, tokens)

        async def add(tasks: int) -> None:
            await workbench.store.write(lambda tx: fill(tx, tasks))

        async def work() -> list[int]:
            now = await drain(workbench, callers)
            done.extend(now)
            return now

        yield Contestant(add, work)
        await check(workbench, done)


@asynccontextmanager
async def theirs(name: str, url: str) -> AsyncIterator[Contestant]:
    """A peer."""
    async with PEERS[name](url) as queue:
        yield Contestant(queue.fill, queue.drain)


async def _measure(
    contestant: Callable[..., AbstractAsyncContextManager[Contestant]], url: str, *arguments: str
) -> None:
    async with contestant(url, *arguments) as (add, work):
        say("ready")
        async for tasks in orders():
            await add(tasks)
            started = time.perf_counter()
            done = await work()
            seconds = time.perf_counter() - started
            assert len(set(done)) == len(done) == tasks, f"{len(done)} of {tasks} tasks, {len(set(done))} distinct"
            say(tasks / seconds)


ROW = Row(
    "B4",
    f"claim + complete on PostgreSQL, {AGENTS} agents",
    "pgqueuer, procrastinate",
    {LINES["pgqueuer"]: at_least(1.5), LINES["procrastinate"]: at_least(15)},
    run,
    needs=("pgqueuer", "asyncpg", "procrastinate"),
    needs_postgres=True,
)

if __name__ == "__main__":
    play(ours=partial(_measure, ours), **{name: partial(_measure, partial(theirs, name)) for name in PEERS})
