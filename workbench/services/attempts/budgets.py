"""What becomes of agents at work when a budget is used up: the setting `budget_ends_running` ends them."""

from __future__ import annotations

from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.services.processes import termination
from workbench.services.spending import budgets

REASON = "The budget of its task is used up."


@duty("ending agents whose budgets are used up", 2.0, wakes=True)
async def end_running(ctx: Ctx) -> None:
    """End the processes of agents that hold tasks whose budgets are used up; the tasks stay open."""
    if not ctx.settings.budget_ends_running:
        return
    if agents := await ctx.read(budgets.at_work):
        await termination.end_each(ctx.of(SYSTEM), agents, REASON)
