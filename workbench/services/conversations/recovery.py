"""Answers whose server has ended: they are interrupted, and what had come of them is kept."""

from __future__ import annotations

from workbench.ops import Ctx
from workbench.ops.duties import recovers
from workbench.providers.frames import AnswerUsage
from workbench.services.conversations import ending, turns
from workbench.store.base import Tx


@recovers
async def recover(ctx: Ctx) -> None:
    """Record answers as interrupted that are running, but not here: now this server is the only one that makes any."""
    await ctx.write(lambda tx: _settle(tx, ctx, None))


def settle_lost(tx: Tx, ctx: Ctx, conversation_id: str) -> None:
    """Record the answer of a conversation as interrupted, if it runs, but not here."""
    _settle(tx, ctx, conversation_id)


def _settle(tx: Tx, ctx: Ctx, only: str | None) -> None:
    for row in tx.all(turns.SQL.running):
        conversation_id = row["conversation_id"]
        if only in (None, conversation_id) and not ctx.answers.is_here(conversation_id):
            made = turns.transcript_of(tx, row["id"])
            asked = AnswerUsage(None, None, 1, None, unmeasured=1) if row["model"] else None  # once at least
            ending.ended(tx, conversation_id, row["id"], ending.interrupted(asked), made, [])
