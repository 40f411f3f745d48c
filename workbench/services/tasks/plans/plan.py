"""The operations of plans: create or update one from text, list them, export one as text.

A plan is stored as its tasks; of its text, only a hash of the content is stored, to recognise it.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from workbench.errors import BadInput, Conflict, Hint
from workbench.model import Level, TaskState, Wire
from workbench.ops import Columns, Command, Ctx, op
from workbench.rules.secrets.executed import with_masks
from workbench.rules.tasks import plan as rules
from workbench.services.tasks.board import no_plan
from workbench.services.tasks.plans.apply import apply_proposal
from workbench.services.tasks.plans.proposal import (
    PlanMade,
    Proposal,
    propose,
    require_changeable,
    require_checks,
    require_own,
    require_version,
    version_of,
)
from workbench.services.tasks.plans.standing import PlanStanding, defaults_of, numbered, read_standing, without_defaults
from workbench.services.tasks.rows import task_scope
from workbench.store.base import Reader
from workbench.store.queries import beside

SQL = beside(__file__)


class PlanText(Wire):
    """A plan as text, and the version that it was exported from; see `create_plan`."""

    plan: str
    version: str
    format: rules.Format
    text: str


class PlanSummary(Wire):
    """The progress of a plan: `tasks` are all of them, and each is completed, failed, cancelled or open.

    `blocked` are those of the open ones that wait for others.
    """

    plan: str
    tasks: int
    completed: int
    failed: int
    cancelled: int
    open: int
    blocked: int
    version: str


class PlanPage(Wire):
    """Plans, oldest first."""

    SHOWN: ClassVar = Columns(
        "plans",
        "plan tasks completed failed cancelled open blocked version",
        "There are no plans. `workbench plan FILE` creates one.",
    )

    plans: list[PlanSummary]


@op(allow=Level.PLANNER, command="plan")
async def create_plan(
    ctx: Ctx,
    text: Annotated[
        str,
        Field(
            max_length=2_000_000,
            description="YAML: `plan`, its name, and `tasks`, a list. A task has name, title and persona, and may have "
            "description, worktree, after (names of tasks it waits for), parent (a name), run, priority. Or a Markdown "
            "checklist.",
        ),
    ],
    name: Annotated[str | None, Field(description="Use this name instead of the plan's own.")] = None,
    number_if_taken: Annotated[bool, Field(description="If the name is taken, add a number to it.")] = False,
    format: Annotated[
        Literal["auto", "yaml", "markdown"], Field(description="The format of the text; auto recognises it.")
    ] = "auto",
    update: Annotated[bool, Field(description="If the plan exists, change it to match the text.")] = False,
    dry_run: Annotated[bool, Field(description="Only report in `diff` what would change.")] = False,
    based_on: Annotated[
        str | None,
        Field(max_length=64, description="Refuse to update another version than this."),
    ] = None,
    trust_workplace: Annotated[bool, Field(description="Trust what its workplace opens (operator).")] = False,
) -> PlanMade:
    """Create all tasks of a plan, or none: each problem is reported with its line. The same plan again changes nothing.

    An update, of your own plan, adds tasks, changes pending ones, changes and retries failed ones, and cancels those
    that the text no longer has. Other tasks must stay as they are. One that names no session stays in its current one.
    """
    defaults = await ctx.read(lambda tx: defaults_of(tx, ctx))
    plan = await asyncio.to_thread(rules.parse, text, personas=defaults.persona_lease_seconds.keys(), format=format)
    if name is not None:
        plan = rules.rename(plan, name)
    if len(plan.tasks) > ctx.settings.max_plan_tasks:
        raise BadInput("TOO_LARGE", f"A plan may have at most {ctx.settings.max_plan_tasks:,} tasks.")

    def make_proposal(tx: Reader) -> Proposal:
        proposal = propose(tx, ctx, numbered(tx, plan) if number_if_taken else plan, defaults)
        require_version(proposal, based_on)
        if proposal.standing.exists and proposal.changes and not (update or dry_run):
            raise Conflict(
                "PLAN_EXISTS",
                f"Another plan {plan.plan!r} already exists.",
                Hint(
                    "",
                    "Give this one another name, or call with {} to change that plan.",
                    "Give this one another name, or give {} to change that plan.",
                    update=True,
                ),
            )
        require_own(tx, ctx.caller, proposal)
        require_changeable(proposal)
        require_checks(tx, proposal)
        return proposal

    if dry_run:
        return (await ctx.read(make_proposal)).answer()
    return await ctx.write(lambda tx: apply_proposal(tx, ctx, make_proposal(tx), trust_workplace))


@op(allow=Level.READ, reads=True, command=Command("plans"))
async def list_plans(ctx: Ctx) -> PlanPage:
    """List the plans of this project and their progress."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list, task_scope(tx, ctx.caller)))
    return PlanPage(plans=[PlanSummary(**row) for row in rows])


@op(
    allow=Level.READ,
    reads=True,
    tool=False,
    command=Command("export-plan NAME", names={"NAME": "plan"}, prints="{text}"),
)
async def export_plan(
    ctx: Ctx,
    plan: Annotated[str, Field(description="Its name; see list_plans.")],
    format: Annotated[rules.Format, Field(description="The form of the text.")] = "yaml",
    tick: Annotated[
        bool, Field(description="In Markdown, tick the completed tasks; create_plan then leaves them out.")
    ] = False,
) -> PlanText:
    """Export a plan as text, without comments, from its current tasks. create_plan reads it as an equal plan.

    Secrets in it are masked; in an update of the plan, their masks stand for them.
    """

    def query(tx: Reader) -> tuple[PlanStanding, rules.Defaults]:
        task_scope(tx, ctx.caller)
        return read_standing(tx, ctx.caller, plan), defaults_of(tx, ctx)

    standing, defaults = await ctx.read(query)
    if not standing.exists or not standing.visible:
        raise no_plan(plan)
    tasks = [without_defaults(rules.without_secrets(task), ctx.caller, defaults) for task in standing.tasks]
    workplace = with_masks(dict(standing.workplace))
    exported = rules.Plan(plan=plan, tasks=tasks, budget=standing.budget, workplace=workplace)
    done = {name for name, row in standing.rows.items() if tick and row["status"] == TaskState.COMPLETED}
    text = await asyncio.to_thread(rules.write, exported, format, completed=done)
    return PlanText(plan=plan, version=version_of(standing.sha256), format=format, text=text)
