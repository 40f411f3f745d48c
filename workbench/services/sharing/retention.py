"""Limits how much history the store has row by row: old events are rolled up to Parquet, which queries read."""

from __future__ import annotations

import asyncio

from workbench.model import SECOND
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.store import rolled_up

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
