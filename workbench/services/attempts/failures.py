"""The answers to the questions that repeated failures ask: go on, or stop the agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.ops import Ctx
from workbench.services import approvals, holds
from workbench.services.approvals import ApprovalInfo, decision_handler
from workbench.services.processes import termination
from workbench.store.base import Tx

STOPPED = "What it works with fails, and you stopped it."


@decision_handler(holds.KIND)
async def decide_failure(
    ctx: Ctx, question: ApprovalInfo, approved: bool, choices: Mapping[str, Any]
) -> dict[str, Any]:
    """End a hold. Approved: its agents claim tasks again; rejected: their processes end, and their tasks stay open."""
    approvals.check_choices(choices, set() if approved else {"reason"})
    scope, person = question.payload["scope"], approvals.person_of(ctx)
    reason = "" if approved else str(choices["reason"])
    outcome = holds.outcome(question.payload, goes_on=approved)

    def change(tx: Tx) -> dict[str, Any]:
        stored = approvals.decide(tx, question, "approved" if approved else "rejected", reason, outcome, person)
        holds.release(tx, scope)
        return stored

    if not approved:  # before the hold ends, or they would claim once more
        agents = await ctx.read(lambda tx: holds.agents_of(tx, scope))
        await termination.end_each(ctx, [row["id"] for row in agents], STOPPED)
    outcome = await ctx.write(change)
    ctx.gateway.keys.clear()  # she may have replaced the key that was refused
    return outcome
