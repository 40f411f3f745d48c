"""What the tasks of a plan may take and cost, by what similar attempts took and cost in this project."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import Level, Wire
from workbench.ops import Columns, Command, Ctx, op
from workbench.rules import estimates as rules
from workbench.rules.estimates import Attempt, Spread
from workbench.rules.execution import ANY, SCRIPT, Staff, parse_staff
from workbench.services.spending import ledger
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

MOST_ATTEMPTS = 2_000
"""The newest that count."""


class TaskEstimate(Wire):
    """What similar attempts took and cost: `attempts` of them, the least, the median and the most of each.

    `basis`: task, attempts at tasks of the same title and persona; persona, of the same persona; null: there are none.
    """

    task_id: int
    title: str
    basis: Literal["task", "persona"] | None
    attempts: int
    seconds_low: float | None
    seconds: float | None
    seconds_high: float | None
    usd_low: float | None
    usd: float | None
    usd_high: float | None


class PlanEstimate(Wire):
    """What is to be expected of the tasks of a plan that are to do, and of all that are known together."""

    SHOWN: ClassVar = Columns(
        "tasks",
        "task_id=task title basis=like attempts seconds_low=at_least seconds seconds_high=at_most usd_low=at_least "
        "usd usd_high=at_most",
        "Nothing is left to do.",
    )

    plan: str
    sentence: str
    seconds: float | None
    usd: float | None
    tasks: list[TaskEstimate]


@op(allow=Level.OPERATOR, reads=True, tool=False, command=Command("estimate PLAN", offers={"plan": "plans"}))
async def estimate_costs(
    ctx: Ctx,
    plan: Annotated[str, Field(max_length=200, description="The plan's name; see list_plans.")],
    staff: Annotated[
        str, Field(max_length=2_000, description="Who is to work, such as implementer=2:claude; see run.")
    ] = "",
) -> PlanEstimate:
    """Say what the tasks of a plan may take and cost, by what similar attempts took and cost in this project.

    It also says which models they asked that a budget in US dollars does not let them ask, because no price is known.

    Raises:
        NotFound: ``PLAN_NOT_FOUND``. BadInput: ``BAD_STAFF``.
    """
    profiles = {one.persona: one for one in (parse_staff(staff) if staff else ())}

    def question(tx: Reader) -> tuple[PlanEstimate, set[str], list[str]]:
        if not tx.one(SQL.has_plan, plan=plan):
            raise NotFound("PLAN_NOT_FOUND", f"There is no plan {plan!r}.", Hint("list_plans", "{} lists the plans."))
        earlier = [Attempt(**row) for row in tx.all(SQL.attempts, plan=plan, limit=MOST_ATTEMPTS)]
        to_do = tx.all(SQL.to_do, plan=plan)
        scopes = {"project", f"plan:{plan}", *(f"persona:{task['persona_id']}" for task in to_do)}
        scopes |= {f"task:{task['id']}" for task in to_do}
        models = [row["model"] for row in tx.all(SQL.unpriced_models, plan=plan)]
        return _estimate(plan, to_do, profiles, earlier), scopes, models

    estimate, scopes, models = await ctx.read(question)
    warning = await ledger.price_warning(ctx, models, scopes.__contains__)
    return estimate.model_copy(update={"sentence": " ".join([estimate.sentence, *warning])})


def _estimate(plan: str, to_do: list[Row], staff: dict[str, Staff], earlier: list[Attempt]) -> PlanEstimate:
    tasks, times, costs = [], [], []
    based_on: set[int] = set()  # an attempt that several tasks are like counts once
    for task in to_do:
        chosen = staff.get(task["persona_id"]) or staff.get(ANY)
        profile = chosen.profile if chosen else SCRIPT if task["has_command"] else None
        basis, alike = rules.similar(task["title"], task["persona_id"], profile, earlier)
        based_on |= set(map(id, alike))
        seconds = Spread.of([attempt.seconds for attempt in alike])
        usd = Spread.of([attempt.usd for attempt in alike if attempt.usd is not None])
        times.append(seconds)
        costs.append(usd)
        tasks.append(
            TaskEstimate(
                task_id=task["id"],
                title=task["title"],
                basis=basis,
                attempts=len(alike),
                **_fields("seconds", seconds),
                **_fields("usd", usd),
            )
        )
    seconds, usd = Spread.total(times), Spread.total(costs)
    known = sum(1 for task in tasks if task.basis)
    return PlanEstimate(
        plan=plan,
        sentence=rules.in_words(known, len(tasks), len(based_on), seconds, usd),
        seconds=seconds and seconds.median,
        usd=usd and usd.median,
        tasks=tasks,
    )


def _fields(name: str, spread: Spread | None) -> dict[str, float | None]:
    if spread is None:
        return dict.fromkeys((f"{name}_low", name, f"{name}_high"))
    return {f"{name}_low": spread.low, name: spread.median, f"{name}_high": spread.high}
