"""B34: what a request costs to book, in a plan with a budget, when very many were booked before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from tests.bench.project import scratch
from tests.bench.rows import Row, Samples, at_most, take_turns
from workbench.app import Workbench
from workbench.rules.models.prices import Prices
from workbench.rules.models.usage import ModelUsage
from workbench.services.spending import ledger
from workbench.state.settings import Settings
from workbench.store.queries import Query

BOOKED = 1_000_000
REQUESTS = 300
PLAN = "plan: p\nbudget: {usd: 1000000}\ntasks:\n- {name: a, title: a, persona: implementer}\n"
FILL = Query(
    "fill",
    """
    INSERT INTO spending (at, source, task_id, plan, input_tokens, output_tokens, cost_usd)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
    SELECT i, 'gateway', 1, 'p', 100, 10, 0.001 FROM n
    """,
)


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Seconds that the requests of a turn take, one after the other."""
    with scratch() as directory:
        return {"": asyncio.run(_measured(directory, rounds, 1_000 if quick else BOOKED))}


async def _measured(directory: Path, rounds: int, booked: int) -> Samples:
    async with (
        Workbench.open(Settings(project=directory / "old")) as old,
        Workbench.open(Settings(project=directory / "new")) as new,
    ):
        for workbench in (old, new):
            await workbench.call("create_plan", text=PLAN)
            await workbench.call("set_budget", scope="project", tokens=10**15)
        await old.store.write(lambda tx: tx.run(FILL, count=booked))
        loop = asyncio.get_running_loop()

        def turn(workbench: Workbench) -> float:
            return asyncio.run_coroutine_threadsafe(_booked(workbench), loop).result()

        times = await asyncio.to_thread(take_turns, rounds, ours=lambda: turn(old), other=lambda: turn(new))
    return Samples(times["ours"], times["other"], "s", note=f"{min(times['ours']) / REQUESTS * 1e3:.2f} ms each")


async def _booked(workbench: Workbench) -> float:
    usage = ModelUsage(100, 0, 0, 0, 10, 0)
    began = time.perf_counter()
    for _ in range(REQUESTS):
        now = workbench.store.now()
        request = ledger.ModelSpending(now, "gateway", "anthropic", "m", usage, None, 1, cost_usd=0.001)
        await workbench.store.write(lambda tx, request=request: ledger.add(tx, request, Prices()), durable=False)  # type: ignore[misc]
    return time.perf_counter() - began


ROW = Row(
    "B34",
    f"Booking {REQUESTS} requests in a plan with a budget after {BOOKED:,} others",
    "the same in a new project",
    {"": at_most(1.5)},
    run,
)
