"""Calls whose program has ended in the middle: they are interrupted, and their questions withdrawn."""

from __future__ import annotations

from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty, recovers
from workbench.services import approvals
from workbench.services.tools import call_log
from workbench.services.tools.call_log import CallEnd
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
REASON = "The program that called the tool, or ran it, has ended."


@recovers
@duty("interrupting lost calls", 5.0, share=0.05)
async def interrupt(ctx: Ctx) -> None:
    """Record the end of calls that nothing runs any more."""
    rows = await ctx.read(lambda tx: tx.all(SQL.unfinished))
    lost = [row for row in rows if ctx.running_calls.is_lost(row["id"], row["runner"])]
    if lost:
        limit = ctx.settings.tool_shown_chars
        await ctx.store.write(lambda tx: _interrupt(tx, lost, limit), actor=SYSTEM.name)


def _interrupt(tx: Tx, lost: list[Row], limit: int) -> None:
    for row in lost:
        if call_log.ended(tx, row["id"], CallEnd("interrupted", code="TOOL_INTERRUPTED"), limit):
            withdraw(tx, row["approval_id"], REASON)


def withdraw(tx: Tx, approval_id: int | None, reason: str) -> None:
    """Withdraw the question about a call, if there is one."""
    question = approvals.find(tx, approval_id) if approval_id is not None else None
    if question is not None:
        approvals.withdraw(tx, question, reason)
