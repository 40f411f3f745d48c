"""Marks agents as silent: they hold a task, and their process gives no sign of life. They are never ended for that.

Signs are what the process writes to its log, requests to models, and work of the processor. What a supervisor needs for
its heartbeats is none: below `IDLE_SHARE` of a processor counts as nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from workbench.model import SECOND
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.services.processes.processes import log_of
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

IDLE_SHARE = 0.01
"""The share of one processor up to which a process counts as idle."""


@duty("noticing silent agents", lambda settings: min(5.0, settings.stall_seconds / 4) or 5.0)
async def notice(ctx: Ctx) -> None:
    """Mark the agents that have been silent for `stall_seconds`, and take the mark from those that are heard again."""
    stall = ctx.settings.stall_seconds
    since = ctx.store.now() - int(stall * SECOND)
    machine = ctx.local.machine.only

    def question(tx: Reader) -> tuple[list[Row], list[Row]]:
        return tx.all(SQL.working, since=since, machine=machine), tx.all(SQL.marked, machine=machine)

    working, marked = await ctx.read(question)
    heard = await asyncio.to_thread(_heard, ctx, working)
    silent = {
        row["agent_id"]: (row, at)
        for row, at in zip(working, heard, strict=True)
        if stall and at <= since and row["worked"] is not None and row["worked"] <= IDLE_SHARE * stall
    }
    begun = [(row, at) for row, at in silent.values() if row["silent_since"] is None]
    over = [row for row in marked if row["agent_id"] not in silent]
    if begun or over:
        await ctx.of(SYSTEM).write(lambda tx: _note(tx, begun, over))


def _note(tx: Tx, begun: Sequence[tuple[Row, int]], over: Sequence[Row]) -> None:
    for row in over:
        tx.run(SQL.unmark, agent_id=row["agent_id"])
        tx.emit("agent.heard", f"agent:{row['agent']}", agent_uid=row["agent_id"])
    for row, at in begun:
        place = {name: row[name] for name in ("task_id", "attempt")}
        tx.run(SQL.mark, place, agent_id=row["agent_id"], since=at)
        tx.emit("agent.silent", f"agent:{row['agent']}", agent_uid=row["agent_id"], **place, since=at)


def _heard(ctx: Ctx, working: Sequence[Row]) -> list[int]:
    """When each agent was heard of last, microseconds UTC. Blocks."""
    stored = ("claimed_at", "asked_at", "answered_at")
    return [max(_written(log_of(ctx, row["agent_id"])), *(row[name] or 0 for name in stored)) for row in working]


def _written(log: Path) -> int:
    """When a log was last written to; 0 without one."""
    try:
        return log.stat().st_mtime_ns // 1_000
    except OSError:
        return 0
