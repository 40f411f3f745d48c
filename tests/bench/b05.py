"""B5: what a claim costs when there are more tasks, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.bench.project import Running, prepare, running, scratch, unclaim
from tests.bench.rows import SHORT, Row, Samples, at_most, take_turns
from tests.postgres import installed, running_server

AGENTS = 64
CLAIMS = 4
"""Claims of every agent in a round."""
FEW = 1_000
MANY = {"at 100,000": 100_000, "at 1,000,000": 1_000_000}
ON_POSTGRES = "on PostgreSQL "


async def claim(project: Running) -> float:
    """Microseconds of one claim, when all agents claim at once; putting back is not counted."""
    seconds = 0.0
    for _ in range(CLAIMS):
        started = time.perf_counter()
        claims = await asyncio.gather(*(project.workbench.dispatch(c, "claim_task", {}) for c in project.callers))
        seconds += time.perf_counter() - started
        assert len({claim["task"]["id"] for claim in claims}) == len(claims)
        await project.workbench.store.write(unclaim)
    return seconds / CLAIMS / len(project.callers) * 1e6


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Most tasks cannot be claimed (see project.sql): those must not be in the way."""
    sizes = {"few": FEW} | {name: size for name, size in MANY.items() if not (quick and size > 100_000)}
    binaries = installed()
    with scratch() as directory:
        (directory / "sqlite").mkdir()
        measured = _measure(rounds, directory / "sqlite", dict.fromkeys(sizes), sizes)
        if binaries is None:
            return measured
        (directory / "postgres").mkdir()
        with running_server(binaries) as server, ExitStack() as stack:
            urls = {name: server.url(stack.enter_context(server.new_database())) for name in sizes}
            on_postgres = _measure(rounds, directory / "postgres", urls, sizes)
    return measured | {ON_POSTGRES + name: samples for name, samples in on_postgres.items()}


def _measure(
    rounds: int, directory: Path, urls: Mapping[str, str | None], sizes: Mapping[str, int]
) -> dict[str, Samples]:
    with ExitStack() as stack:
        contestants: dict[str, Callable[[], float]] = {}
        for name, size in sizes.items():
            seed = prepare(directory / str(size), agents=AGENTS, tasks=size, mixed=True, database_url=urls[name])
            project = stack.enter_context(running(seed.root, seed.tokens, urls[name]))
            contestants[name] = partial(_timed, project)
        times = take_turns(rounds * SHORT, **contestants)
    return {name: Samples(times[name], times["few"], "µs") for name in sizes if name != "few"}


def _timed(project: Running) -> float:
    return project.run(claim(project))


ROW = Row(
    "B5",
    "one claim",
    f"itself at {FEW:,} tasks",
    {where + name: at_most(1.5) for where in ("", ON_POSTGRES) for name in MANY},
    run,
)
