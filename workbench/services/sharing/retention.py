"""Limits how much history the store has row by row: old events are rolled up to Parquet, which queries read.

What they leave is used again; `vacuum` gives it back to the file system.
"""

from __future__ import annotations

import asyncio

from workbench.model import SECOND, Level, Wire
from workbench.ops import SYSTEM, Command, Ctx, op
from workbench.ops.duties import duty
from workbench.store import rolled_up
from workbench.store.base import Reader
from workbench.store.queries import beside

SQL = beside(__file__)
DAY = 86_400 * SECOND


@duty("rolling up old events", 600.0, share=0.2, once=True)
async def roll_up(ctx: Ctx) -> float | None:
    """Take the next step: remove some rows that a file has replaced, or make the next file."""
    if not ctx.settings.keep_events_days:
        return None
    if await ctx.store.write(rolled_up.remove_rows, actor=SYSTEM.name):
        return 0.0
    before = ctx.store.now() - round(ctx.settings.keep_events_days * DAY)
    old = await ctx.store.read(lambda tx: rolled_up.next_events(tx, before))
    if old is None:
        return None
    file = await asyncio.to_thread(rolled_up.as_file, old)
    await ctx.store.write(lambda tx: rolled_up.put(tx, file), actor=SYSTEM.name)
    return 0.0


class StoreSize(Wire):
    """The size of the store in bytes, before and after."""

    before: int
    after: int


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command("vacuum", "The store had {before:,} bytes, and has {after:,}."),
)
async def vacuum_store(ctx: Ctx) -> StoreSize:
    """Give the space that is free in the store back to the file system. Changes wait meanwhile.

    On PostgreSQL the server's autovacuum does what is needed, and this does nothing.
    """
    before = await ctx.read(_size)
    await ctx.store.vacuum()
    return StoreSize(before=before, after=await ctx.read(_size))


def _size(tx: Reader) -> int:
    row = tx.one(SQL.size)
    assert row is not None
    return int(row["bytes"])
