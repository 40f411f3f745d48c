"""B5: what a claim costs when there are more tasks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial

from tests.bench.project import Running, prepare, running, scratch, unclaim
from tests.bench.rows import SHORT, Row, Samples, at_most, take_turns

AGENTS = 64
CLAIMS = 4
"""Claims of every agent in a round."""
FEW = 1_000
MANY = {"at 100,000": 100_000, "at 1,000,000": 1_000_000}


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
    with scratch() as directory, contextlib.ExitStack() as stack:
        contestants: dict[str, Callable[[], float]] = {}
        for name, size in sizes.items():
            seed = prepare(directory / str(size), agents=AGENTS, tasks=size, mixed=True)
            project = stack.enter_context(running(seed.root, seed.tokens))
            contestants[name] = partial(_timed, project)
        times = take_turns(rounds * SHORT, **contestants)
    return {name: Samples(times[name], times["few"], "µs") for name in sizes if name != "few"}


def _timed(project: Running) -> float:
    return project.run(claim(project))


ROW = Row(
    "B5",
    "one claim",
    f"itself at {FEW:,} tasks",
    {name: at_most(1.5) for name in MANY},
    run,
)
