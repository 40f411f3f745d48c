"""B1: claim and complete through the door, 64 agents in one process, beside huey.

The bar is for a disk whose fsync takes a millisecond, as those of most people do; on
the machine's own the row informs, with that disk's time beside it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.bench import disk, peers
from tests.bench.child import Child, heard, say
from tests.bench.project import Seed, drained, prepare, scratch
from tests.bench.rows import Row, Samples, at_least, take_turns

AGENTS = 64
FSYNC_SECONDS = 0.001
USUAL = f"fsync of {FSYNC_SECONDS * 1000:g} ms"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Tasks claimed and completed a second. huey is driven by one loop: more threads only make it slower."""
    tasks = 300 if quick else 4_000
    with scratch() as directory:
        seed = prepare(directory / "seed", agents=AGENTS, tasks=tasks)
        own = f"fsync {disk.fsync_seconds(directory) * 1000:.2f} ms"
        measured = {"this machine's disk": _measure(rounds, seed, directory, tasks, {}, own)}
        slowed = disk.slowed(directory, FSYNC_SECONDS)
        if slowed is not None:
            measured[USUAL] = _measure(rounds, seed, directory, tasks, slowed)
        return measured


def _measure(
    rounds: int, seed: Seed, directory: Path, tasks: int, environment: Mapping[str, str], note: str = ""
) -> Samples:
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(Child("b01", str(seed.root), str(directory / "ours"), extra=environment))
        huey = stack.enter_context(Child("b01", "huey", str(directory / "huey"), extra=environment))
        rates = take_turns(rounds, ours=lambda: float(ours.ask(list(seed.tokens))), huey=lambda: float(huey.ask(tasks)))
    return Samples(rates["ours"], rates["huey"], "tasks/s", note=note)


ROW = Row(
    "B1",
    "claim + complete, 64 agents",
    "huey, dequeue + execute",
    {USUAL: at_least(2.5)},
    run,
    needs=("huey",),
)

if __name__ == "__main__":
    contestant, place = sys.argv[1:]
    for asked in heard():
        if contestant == "huey":
            say(peers.drained("huey", Path(place), asked))
        else:
            say(drained(Seed(Path(contestant), asked), Path(place)))
