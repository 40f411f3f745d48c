"""B1: claim and complete through the door, 64 agents in one process, beside huey."""

from __future__ import annotations

from collections.abc import Mapping

from tests.bench import peers
from tests.bench.project import drained, prepare, scratch
from tests.bench.rows import Row, Samples, at_least, take_turns

AGENTS = 64


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Tasks claimed and completed a second. huey is driven by one loop: more threads only make it slower."""
    tasks = 300 if quick else 4_000
    with scratch() as directory:
        seed = prepare(directory / "seed", agents=AGENTS, tasks=tasks)
        rates = take_turns(
            rounds,
            ours=lambda: drained(seed, directory / "ours"),
            huey=lambda: peers.drained("huey", directory / "huey", tasks),
        )
    return {"": Samples(rates["ours"], rates["huey"], "tasks/s")}


ROW = Row(
    "B1",
    "claim + complete, 64 agents",
    "huey, dequeue + execute",
    {"": at_least(2.5)},
    run,
    needs=("huey",),
)
