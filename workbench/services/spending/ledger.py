"""The ledger of requests to models: each is one row, booked once, with the task, agent and plan that it was for.

Its cost is that of the day it was made. What is not known is null: a model without a price has no cost, not 0.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from workbench.errors import BadInput, NotFound, Refused
from workbench.model import SECOND, Int64, Level, Micros, Wire
from workbench.ops import Caller, Columns, Command, Ctx, Ok, op
from workbench.rules.models import prices
from workbench.rules.models.prices import Prices
from workbench.rules.models.usage import ModelUsage
from workbench.services.spending import budgets
from workbench.services.spending import spent as sums
from workbench.state import user_files
from workbench.state.settings import shipped
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside
from workbench.system import atomic_file

SQL = beside(__file__)
DAY = 86_400 * SECOND
Source = Literal["gateway", "chat", "reported"]
Tokens = Annotated[int | None, Field(ge=0, le=10**12)]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelSpending:
    """One request to a model.

    Args:
        at: when it was sent, in microseconds.
        agent: the internal id of the agent that it was for.
        status: that of the provider's answer.
        is_cut: the answer ended before its end; is_estimated: its tokens are guessed.
        cost_usd: None: by the table of prices.
        report: identifies what a program has told of it.
    """

    at: int
    source: Source
    provider: str | None
    model: str | None
    usage: ModelUsage
    agent: str | None = None
    task_id: int | None = None
    attempt: int | None = None
    run_id: int | None = None
    conversation: str | None = None
    status: int | None = None
    error_code: str | None = None
    seconds: float | None = None
    first_byte_seconds: float | None = None
    is_cut: bool = False
    is_estimated: bool = False
    cost_usd: float | None = None
    report: str | None = None


def add(tx: Tx, spent: ModelSpending, known: Prices) -> None:
    """Book a request, with its cost by the prices of its day, sum it up, and compare the sums with the budgets."""
    values = asdict(spent)
    values |= values.pop("usage")
    if spent.cost_usd is None:
        day = datetime.datetime.fromtimestamp(spent.at / SECOND, datetime.UTC).date()
        cost = known.cost(spent.model, spent.usage, day)
        values["cost_usd"] = None if cost is None else float(cost)
    place = sums.place(tx, spent.task_id, spent.agent, spent.at, spent.run_id)
    values |= place.columns | {"is_cut": int(spent.is_cut), "is_estimated": int(spent.is_estimated)}
    tx.run(SQL.add, values)
    sums.book(tx, place.scopes, spent.usage, values["cost_usd"])
    budgets.follow(tx, place.scopes)


def read_prices() -> Prices:
    """The person's own prices, then those that come with Workbench. Blocks.

    Raises:
        BadInput: ``PRICES_INVALID``.
    """
    path = user_files.directory() / "prices.yaml"
    try:
        own = prices.parse(atomic_file.read(path), str(path))
    except FileNotFoundError:
        own = []
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("PRICES_INVALID", f"The table of prices {path} cannot be read: {error}.") from None
    place = shipped("data", "prices.yaml")
    return Prices(own, prices.parse(place.read_text("utf-8"), place.name))


async def usable_prices(ctx: Ctx) -> Prices:
    """The prices, or none while the person's table cannot be used: costs are then unknown, and the log says why."""
    stamp = await asyncio.to_thread(_stamp)
    if ctx.local.gateway.prices is None or ctx.local.gateway.prices[0] != stamp:
        try:
            known = await asyncio.to_thread(read_prices)
        except BadInput as error:
            log.warning("%s", error.message)
            known = Prices()
        ctx.local.gateway.prices = stamp, known
    return ctx.local.gateway.prices[1]


async def is_priced(ctx: Ctx, model: str | None) -> bool:
    """Whether the price of a model is known today."""
    known = await usable_prices(ctx)
    day = datetime.datetime.fromtimestamp(ctx.store.now() / SECOND, datetime.UTC).date()
    return known.cost(model, ModelUsage(0, 0, 0, 0, 0, 0), day) is not None


async def price_warning(ctx: Ctx, models: Iterable[str], concerns: Callable[[str], bool]) -> list[str]:
    """What to do before agents ask models, if some have no price and budgets are in US dollars; empty: nothing.

    Args:
        concerns: whether the budget of a scope is one that the agents spend.
    """
    limited = [name for scope, name in await ctx.read(budgets.in_dollars) if concerns(scope)]
    unpriced = [model for model in models if not await is_priced(ctx, model)] if limited else []
    if not unpriced:
        return []
    return [
        f"The price of {', '.join(unpriced[:3])} is not known, and the budget of {', '.join(limited[:3])} is in US "
        "dollars: requests are refused. Add the price to prices.yaml, or set the budget in tokens: `workbench budgets "
        "set`."
    ]


def _stamp() -> int | None:
    """When the person's table was changed last; None: there is none. Blocks."""
    try:
        return (user_files.directory() / "prices.yaml").stat().st_mtime_ns
    except OSError:
        return None


async def book(ctx: Ctx, spent: ModelSpending) -> None:
    """Book a request.

    Raises:
        WorkbenchError: an error of the store.
    """
    known = await usable_prices(ctx)
    await ctx.write(lambda tx: add(tx, spent, known), durable=False)


@op(allow=Level.WORKER, tool=False)
async def report_usage(
    ctx: Ctx,
    model: Annotated[str, Field(min_length=1, max_length=200, description="The model's id at its provider.")],
    provider: Annotated[str | None, Field(max_length=100, description="The provider's id.")] = None,
    task_id: Annotated[Int64 | None, Field(ge=1, description="The task that it was for.")] = None,
    attempt: Annotated[Int64 | None, Field(ge=1, description="The attempt at the task.")] = None,
    run_id: Annotated[
        Int64 | None, Field(ge=1, description="The run that it was for; null: the one of your session.")
    ] = None,
    input_tokens: Annotated[Tokens, Field(description="Tokens read anew; cached ones are not among them.")] = None,
    cached_tokens: Annotated[Tokens, Field(description="Tokens read from the provider's cache.")] = None,
    cache_write_tokens: Annotated[Tokens, Field(description="Tokens written to its cache.")] = None,
    output_tokens: Annotated[Tokens, Field(description="Tokens of the answer, with what it thought.")] = None,
    reasoning_tokens: Annotated[Tokens, Field(description="Of them, those of thoughts.")] = None,
    cost_usd: Annotated[float | None, Field(ge=0, le=1e9, description="Its cost; null: by the prices known.")] = None,
) -> Ok:
    """Report a request to a model that you made yourself, not by way of this server.

    Raises:
        Refused: ``FORBIDDEN``: the task, or the attempt at it, is another agent's. NotFound: ``RUN_NOT_FOUND``.
    """
    usage = ModelUsage(input_tokens, cached_tokens, cache_write_tokens, None, output_tokens, reasoning_tokens)
    own_task, own_attempt = ctx.caller.attempt or (task_id, attempt)
    if ctx.caller.attempt is None and own_task is not None:
        await ctx.read(partial(_check_attempted, ctx.caller.agent, own_task, own_attempt))
    if run_id is not None:
        await ctx.read(partial(_check_run, ctx.caller, run_id))
    spent = ModelSpending(
        at=ctx.store.now(),
        source="reported",
        provider=ctx.secrets.masked(provider),
        model=ctx.secrets.masked(model),
        usage=usage,
        agent=ctx.caller.agent,
        task_id=own_task,
        attempt=own_attempt,
        run_id=run_id,
        cost_usd=cost_usd,
    )
    await book(ctx, spent)
    return Ok()


def _check_attempted(agent: str | None, task_id: int, attempt: int | None, tx: Reader) -> None:
    """Refuse an agent that reports about a task that it never worked on."""
    if agent is not None and not tx.one(SQL.attempted, agent=agent, task_id=task_id, attempt=attempt):
        raise Refused("FORBIDDEN", f"You made no such attempt at task {task_id}. Name one of your own, or none.")


def _check_run(caller: Caller, run_id: int, tx: Reader) -> None:
    """Refuse a report about a run that the caller does not see."""
    everything = int(caller.level is Level.OPERATOR)
    if not tx.one(SQL.has_run, run_id=run_id, everything=everything, session=caller.session):
        raise NotFound("RUN_NOT_FOUND", f"There is no run {run_id} in your session. Report it without one.")


class Cost(Wire):
    """What some requests used and cost. `name`: of what they are summed by, an attempt as `7.1` for the first one at
    task 7; null: it is not known. `provider` and `model` are null unless there is only one.

    `unpriced` of the `requests` have no known cost, which `cost_usd` does not contain; `estimated` were cut, and their
    tokens are guessed. `input_tokens` were read anew, `reasoning_tokens` are among the `output_tokens`.
    """

    name: str | None
    provider: str | None
    model: str | None
    requests: int
    unpriced: int
    estimated: int
    input_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    last_at: Micros


class Costs(Wire):
    """Sums, by name."""

    SHOWN: ClassVar = Columns(
        "costs",
        "name requests input_tokens=in cached_tokens=cached cache_write_tokens=written output_tokens=out "
        "cost_usd=cost unpriced estimated",
        "No request to a model was made.",
    )

    costs: list[Cost]


@op(allow=Level.OPERATOR, reads=True, tool=False, command=Command("costs"))
async def list_costs(
    ctx: Ctx,
    by: Annotated[
        Literal[
            "agent", "task", "attempt", "plan", "definition", "session", "persona", "run", "model", "provider", "day"
        ],
        Field(description="What is summed."),
    ] = "agent",
    days: Annotated[int, Field(ge=1, le=36_500, description="Of the last so many days.")] = 30,
    agent_id: Annotated[str | None, Field(max_length=200, description="Only of this agent.")] = None,
    task_id: Annotated[Int64 | None, Field(ge=1, description="Only of this task.")] = None,
    plan: Annotated[str | None, Field(max_length=200, description="Only of this plan.")] = None,
    limit: Annotated[int, Field(ge=1, le=10_000, description="At most so many, those that asked last.")] = 1_000,
) -> Costs:
    """List what requests to models used and cost, by what they were for, by model or by day (UTC)."""
    await asyncio.to_thread(read_prices)  # a table that is wrong is said here, not found by costs that are missing

    def question(tx: Reader) -> Costs:
        which = {"agent": agent_id, "task_id": task_id, "plan": plan}
        query = SQL.costs if task_id is None else SQL.costs_of_task
        rows = tx.all(query, which, by=by, since=ctx.store.now() - days * DAY)
        last = {row["name"] for row in sorted(rows, key=lambda row: row["last_at"], reverse=True)[:limit]}
        return Costs(costs=[_cost(by, row) for row in rows if row["name"] in last])

    return await ctx.read(question)


def _cost(by: str, row: Row) -> Cost:
    name = row["name"]
    if by == "day":
        name = (datetime.date(1970, 1, 1) + datetime.timedelta(days=int(name))).isoformat()
    return Cost(**dict(row) | {"name": name})
