"""Limits what is kept about other nodes: nothing grows without bound."""

from __future__ import annotations

from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)
MOST_TOMBSTONES = 100_000
MOST_SIGNATURES = 200_000
MOST_HISTORY = 100_000
"""Changes of all personalities."""
MOST_STRANGERS = 1_000
"""Nodes that are not known any more whose refusals are kept."""


@duty("pruning what other nodes sent", 600.0, once=True)
async def prune(ctx: Ctx) -> None:
    """Delete the oldest rows beyond each limit."""
    most_bytes = ctx.settings.max_koi_bytes_per_node
    await ctx.store.write(lambda tx: _prune(tx, most_bytes), actor=SYSTEM.name)


def _prune(tx: Tx, most_bytes: int) -> None:
    tx.run(SQL.prune_tombstones, kept=MOST_TOMBSTONES)
    tx.run(SQL.prune_signatures, kept=MOST_SIGNATURES)
    tx.run(SQL.prune_history, kept=MOST_HISTORY)
    tx.run(SQL.prune_history_bytes, most=most_bytes)
    tx.run(SQL.prune_rejections)
    tx.run(SQL.prune_refusals, kept=MOST_STRANGERS)
