"""Agents that are stopped: the answers to the questions that repeated failures ask, and budgets that are used up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.services import approvals, holds
from workbench.services.approvals import ApprovalInfo, decision_handler
from workbench.services.processes import termination
from workbench.services.spending import budgets
from workbench.store.base import Tx

STOPPED = "What it works with fails, and you stopped it."
USED_UP = "The budget of its task is used up."


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
    ctx.local.gateway.keys.clear()  # she may have replaced the key that was refused
    return outcome


@duty("ending agents whose budgets are used up", 2.0, wakes=True)
async def end_running(ctx: Ctx) -> None:
    """End the processes of agents that hold tasks whose budgets are used up; the tasks stay open."""
    if not ctx.settings.budget_ends_running:
        return
    if agents := await ctx.read(budgets.at_work):
        await termination.end_each_here(ctx.of(SYSTEM), agents, USED_UP)
