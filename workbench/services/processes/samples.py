"""What agents' processes use over time: sampled while they work, thinned with age, and forgotten after a while."""

from __future__ import annotations

import asyncio

from workbench.model import SECOND
from workbench.ops import Ctx
from workbench.process import ProcessTable, Usage
from workbench.services.processes.termination import process_of
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
WHOLE = 3_600 * SECOND
"""How long every sample is kept; of older ones, one a minute."""
DAY = 86_400 * SECOND
CPU_SECONDS = 0.05
MEMORY_SHARE = 0.02
"""A sample that differs by less from the one before is left out."""


async def sample(ctx: Ctx) -> None:
    """Record what the running processes use, of those for which it has changed."""
    if not ctx.settings.process_sample_seconds:
        return
    rows = await ctx.read(lambda tx: tx.all(SQL.running))
    refs = {row["agent_id"]: process_of(row) for row in rows}
    if not refs:
        return
    used = await asyncio.to_thread(ProcessTable().usage, list(refs.values()))
    changed = [(row, usage) for row in rows if _has_changed(row, usage := used[refs[row["agent_id"]]])]
    if changed:
        await ctx.write(lambda tx: _add(tx, changed), durable=False)


async def prune(ctx: Ctx) -> None:
    """Thin what is older than an hour, and delete what is no longer kept."""
    now = ctx.store.now()
    before = now - round(ctx.settings.keep_process_samples_days * DAY)

    def change(tx: Tx) -> None:
        tx.run(SQL.forget, before=before)
        tx.run(SQL.thin, before=now - WHOLE)

    await ctx.write(change, durable=False)


def _has_changed(row: Row, usage: Usage) -> bool:
    """Whether a process uses something else than at its last sample. One that has just ended uses nothing."""
    if not usage.memory_bytes:
        return False
    if row["cpu_seconds"] is None or row["processes"] != _count(usage):
        return True
    worked: float = abs(usage.cpu_seconds - row["cpu_seconds"])
    grown: float = abs(usage.memory_bytes - row["memory_bytes"])
    return worked >= CPU_SECONDS or grown > MEMORY_SHARE * row["memory_bytes"]


def _add(tx: Tx, samples: list[tuple[Row, Usage]]) -> None:
    for row, usage in samples:
        tx.run(
            SQL.add,
            agent=row["agent_id"],
            pid=row["pid"],
            now=tx.now,
            cpu_seconds=round(usage.cpu_seconds, 3),
            memory_bytes=usage.memory_bytes,
            processes=_count(usage),
        )


def _count(usage: Usage) -> int:
    """The processes of a tree."""
    return 1 + len(usage.descendants)
