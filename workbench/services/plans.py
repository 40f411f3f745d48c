"""Plans: a checked list of tasks created whole or not at all."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput, Conflict
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules import plan as rules
from workbench.rules.access import free_id
from workbench.services import tasks
from workbench.services.personas import SQL as PERSONAS
from workbench.services.tasks import PlannedTask
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


class PlanMade(Wire):
    """The tasks of a plan, by the names they have in it."""

    plan: str
    tasks: dict[str, int]
    worktrees: list[str]


class PlanSummary(Wire):
    """How far a plan is."""

    plan: str
    tasks: int
    completed: int
    open: int


class Plans(Wire):
    """Plans, oldest first."""

    plans: list[PlanSummary]


@op(allow=Level.PLANNER)
async def create_plan(
    ctx: Ctx,
    text: Annotated[str, Field(max_length=2_000_000, description="The plan as YAML: `plan:` and `tasks:`.")],
    name: Annotated[str | None, Field(description="Use this name instead of the plan's own.")] = None,
    number_if_taken: Annotated[bool, Field(description="When the name is taken, add a number to it.")] = False,
) -> PlanMade:
    """Create all tasks of a plan, or none: each problem is reported with its line."""
    personas = {row["id"] for row in await ctx.read(lambda tx: tx.all(PERSONAS.list))}
    plan = await asyncio.to_thread(rules.parse, text, personas=personas)
    if name is not None:
        plan = rules.rename(plan, name)
    if len(plan.tasks) > ctx.settings.max_plan_tasks:
        raise BadInput("TOO_LARGE", f"A plan may have at most {ctx.settings.max_plan_tasks:,} tasks.")
    return await ctx.write(lambda tx: _create(tx, ctx, _numbered(tx, plan) if number_if_taken else plan))


@op(allow=Level.READ, reads=True)
async def list_plans(ctx: Ctx) -> Plans:
    """The plans of this project and how far they are."""
    return Plans(plans=[PlanSummary(**row) for row in await ctx.read(lambda tx: tx.all(SQL.list))])


def _create(tx: Tx, ctx: Ctx, plan: rules.Plan) -> PlanMade:
    if tx.one(SQL.exists, plan=plan.plan):
        raise Conflict("PLAN_EXISTS", f"There is a plan {plan.plan!r} already. Give this one another name.")
    made: dict[str, int] = {}
    for task in rules.in_order(plan):
        new = PlannedTask(
            title=task.title,
            description=task.description,
            persona_id=task.persona,
            priority=task.priority,
            dependencies=[made[other] for other in task.after],
            target_worktree=task.worktree,
            run=task.run,
            max_retries=task.max_retries,
            lease_seconds=task.lease_seconds,
            context_ref=task.context_ref,
            metadata=task.metadata,
            plan=plan.plan,
            name=task.name,
        )
        made[task.name] = tasks.add(tx, ctx, new)
    tx.emit("plan.created", f"plan:{plan.plan}", tasks=made)
    return PlanMade(plan=plan.plan, tasks=made, worktrees=plan.worktrees)


def _numbered(tx: Reader, plan: rules.Plan) -> rules.Plan:
    taken = {row["plan"] for row in tx.all(SQL.list)}
    return rules.rename(plan, free_id(plan.plan, taken))
