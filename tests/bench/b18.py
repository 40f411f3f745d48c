"""B18: a graph of tasks: what a claim costs in it, and how soon a circle is refused."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.bench.project import Running, prepare, running, scratch
from tests.bench.rows import Row, Samples, within
from workbench.errors import Conflict

READY = 10_000
WAITS_FOR = 3
"""Tasks that each task waits for, out of the layer before its own."""
LAYER = 100
CLAIMS = 200
CIRCLE = 5_000
SHAPES: Mapping[str, Callable[[int], list[int]]] = {
    "a circle in layers": lambda n: layered(n),
    "a circle of all": lambda n: [-n] if n else [],
}


def layered(number: int) -> list[int]:
    """The dependencies of a task by its number from 0: counted from 1 and negative, as in create_tasks."""
    before = number - number % LAYER - LAYER
    return (
        sorted({-(before + (number * 7 + step * 31) % LAYER + 1) for step in range(WAITS_FOR)}) if before >= 0 else []
    )


async def fill(project: Running, size: int, waits: Callable[[int], list[int]]) -> list[int]:
    """Make tasks that wait for each other; their ids."""
    new = [{"title": f"Task {n}", "persona_id": "implementer", "dependencies": waits(n)} for n in range(size)]
    return list((await project.workbench.call("create_tasks", tasks=new))["task_ids"])


async def claims(project: Running) -> tuple[float, float]:
    """Milliseconds of the median claim, and of the median completion that frees others."""
    spent: dict[str, list[float]] = {"claim_task": [], "complete_task": []}

    async def timed(name: str, arguments: dict[str, Any]) -> Any:
        started = time.perf_counter()
        answer = await project.workbench.dispatch(project.callers[0], name, arguments)
        spent[name].append((time.perf_counter() - started) * 1e3)
        return answer

    for _ in range(CLAIMS):
        claim = await timed("claim_task", {})
        await timed("complete_task", {"task_id": claim["task"]["id"]})
    return statistics.median(spent["claim_task"]), statistics.median(spent["complete_task"])


async def refusal(project: Running, ids: list[int]) -> float:
    """Milliseconds until the first task is refused to wait for the last, which waits for it."""
    started = time.perf_counter()
    try:
        await project.workbench.call("add_dependency", task_id=ids[0], depends_on=ids[-1])
    except Conflict as refused:
        assert refused.code == "DEPENDENCY_CYCLE"
        return (time.perf_counter() - started) * 1e3
    raise AssertionError("a circle was let through")


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Each graph lies in a project of its own."""
    part = 4 if quick else 1  # in fewer layers the last task would not wait for the first
    measured: dict[str, Samples] = {}
    with scratch() as directory:
        seed = prepare(directory / "claims", agents=1, tasks=0)
        with running(seed.root, seed.tokens) as project:
            ids = project.run(fill(project, READY // part, layered))
            edges = sum(len(layered(n)) for n in range(len(ids)))
            times = [project.run(claims(project)) for _ in range(rounds)]
            note = f"{len(ids):,} tasks, {edges:,} edges"
            measured["a claim, p50"] = Samples([claim for claim, _ in times], unit="ms", note=note)
            measured["a completion, p50"] = Samples([done for _, done in times], unit="ms")
        for name, shape in SHAPES.items():
            seed = prepare(directory / name, agents=0, tasks=0)
            with running(seed.root, seed.tokens) as project:
                ids = project.run(fill(project, CIRCLE // part, shape))
                refused = [project.run(refusal(project, ids)) for _ in range(rounds * 3)]
                measured[name] = Samples(refused, unit="ms", note=f"{len(ids):,} tasks")
    return measured


ROW = Row(
    "B18",
    "a graph of tasks",
    "–",
    {"a claim, p50": within(10, "ms")} | dict.fromkeys(SHAPES, within(20, "ms")),
    run,
)
