"""Plans that are carried out at a time of day or at intervals: the server starts `workbench run` for each.

A start is stored before its process is there. One whose process ended without an account, because it or the machine was
ended, is started again; what was done is not done again. Two executions of a plan never run at a time: the second is
told so, see `workbench.execution.carry_out`. What a process is started with is a plan's name and options that were
checked here, and only a person sets them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import psutil
from pydantic import Field

from workbench.errors import Hint, NotFound, WorkbenchError
from workbench.model import SECOND, Level, Micros, Wire
from workbench.ops import SYSTEM, Columns, Command, Ctx, Ok, RestRoute, op
from workbench.ops.duties import duty, on_event
from workbench.process import has_ended, process_identity, process_named
from workbench.rules import schedules as rules
from workbench.rules.budgets import parse as parse_budget
from workbench.rules.execution import parse_staff
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

LATE_SECONDS = 60
"""A start that is later than this was missed: no server ran, or the machine slept."""
MOST_STARTS = 3
"""How often an execution is started that ends without an account."""
OF_THE_SERVER = ("WORKBENCH_RUN", "WORKBENCH_SESSION", "WORKBENCH_TOKEN")
"""Variables that are about the process of the server, not about the project."""

PlanName = Annotated[str, Field(min_length=1, max_length=200, description="The plan's name; see list_plans.")]


class Schedule(Wire):
    """When a plan is carried out, how, and what came of the last time.

    `at` is local, and `every` day, weekday, or hours such as 6h; null: once. `next_at`: null: no start is left.
    `started_at` without `ended_at`: it is under way. `status` is the exit status of `workbench run`; null without an
    account.
    """

    plan: str
    at: str | None
    every: str | None
    missed: Literal["run", "skip"]
    staff: str
    integrate: Literal["ask", "auto-if-checked"]
    budget: str
    until: str | None
    partly: bool
    next_at: Micros | None
    started_at: Micros | None
    ended_at: Micros | None
    status: int | None
    outcome: str | None


class Schedules(Wire):
    """The plans that are scheduled, the next start first."""

    SHOWN: ClassVar = Columns(
        "schedules",
        "plan at every next_at=next started_at=last_start ended_at=ended outcome",
        "Nothing is scheduled. `workbench run PLAN --at 22:00` schedules a plan.",
    )

    schedules: list[Schedule]


class ScheduleCancelled(Wire):
    """A schedule that there is no more. `ended`: the execution that was under way was told to end."""

    plan: str
    ended: bool


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("schedules list"),
    rest=RestRoute("GET", "/schedules", rows="schedules"),
    refreshed_by="schedule",
)
async def list_schedules(ctx: Ctx) -> Schedules:
    """List the plans that are carried out at a time or at intervals, and what came of the last time."""
    return Schedules(schedules=[_schedule(row) for row in await ctx.read(lambda tx: tx.all(SQL.list))])


@op(allow=Level.OPERATOR, tool=False)
async def schedule_plan(
    ctx: Ctx,
    plan: PlanName,
    at: Annotated[
        str | None, Field(description="A local time of day, such as 22:00; null: the first start is now.")
    ] = None,
    every: Annotated[str | None, Field(description="day, weekday, or hours such as 6h; null: once.")] = None,
    missed: Annotated[
        Literal["run", "skip"], Field(description="What becomes of a start that was missed: it is late, or left out.")
    ] = "run",
    staff: Annotated[str, Field(max_length=2_000, description="Who works, such as implementer=2:claude.")] = "",
    integrate: Annotated[
        Literal["ask", "auto-if-checked"], Field(description="Ask for each merge, or merge at once what is checked.")
    ] = "ask",
    budget: Annotated[str, Field(max_length=200, description="What the plan may spend, such as 20usd.")] = "",
    until: Annotated[str | None, Field(description="The local time of day at which each execution ends.")] = None,
    partly: Annotated[bool, Field(description="Leave what nobody is there to do.")] = False,
) -> Schedule:
    """Carry out a plan later, or again and again, instead of what was scheduled for it before.

    The server starts it, also after a restart. A plan goes on with what is left: what is done is not done again.

    Raises:
        NotFound: ``PLAN_NOT_FOUND``. BadInput: ``BAD_SCHEDULE``, ``BAD_STAFF``, ``BAD_BUDGET``.
    """
    now = ctx.store.now() / SECOND
    by_days = every is not None and rules.hours(every) is None
    first = now if at is None else rules.coming(at, now, weekdays=every == "weekday")
    if by_days and at is None:
        at = f"{datetime.fromtimestamp(now):%H:%M}"
    if until is not None:
        rules.time_of_day(until)
    if staff:
        parse_staff(staff)
    if budget:
        parse_budget(budget)
    options = {"staff": staff, "integrate": integrate, "budget": budget, "until": until, "partly": partly}

    def change(tx: Tx) -> Schedule:
        if not tx.one(SQL.has_plan, plan=plan):
            raise NotFound("PLAN_NOT_FOUND", f"There is no plan {plan!r}.", Hint("list_plans", "{} lists the plans."))
        when = {"at": at, "every": every, "missed": missed}
        tx.run(SQL.put, when, plan=plan, options=json.dumps(options), now=tx.now, next=int(first * SECOND))
        tx.emit("schedule.set", f"schedule:{plan}", **when, next_at=int(first * SECOND))
        return _schedule(_require(tx, plan))

    return await ctx.write(change)


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command("schedules cancel PLAN", "{plan} is not scheduled any more.", offers={"plan": "plans"}),
)
async def cancel_schedule(
    ctx: Ctx,
    plan: PlanName,
    end_running: Annotated[
        bool, Field(description="Also end the execution that is under way, and its agents.")
    ] = False,
) -> ScheduleCancelled:
    """Carry out a plan no more by itself. What is under way goes on, unless it is to end.

    Raises:
        NotFound: ``SCHEDULE_NOT_FOUND``.
    """

    def change(tx: Tx) -> Row:
        row = _require(tx, plan)
        tx.run(SQL.remove, plan=plan)
        is_elsewhere = _ends(row) and not ctx.local.machine.has(row["machine"])
        tx.emit("schedule.cancelled", f"schedule:{plan}", **({"process": row["process"]} if is_elsewhere else {}))
        return row

    def _ends(row: Row) -> bool:
        return end_running and row["process"] is not None and row["ended_at"] is None

    row = await ctx.write(change)
    ended = _ends(row) and (
        not ctx.local.machine.has(row["machine"]) or await asyncio.to_thread(_terminate, row["process"])
    )
    return ScheduleCancelled(plan=plan, ended=ended)


@on_event("schedule.cancelled")
def end_cancelled(_: Ctx, event: Row) -> None:
    """End an execution of this machine that another one was told to end."""
    if process := json.loads(event["data"]).get("process"):
        _terminate(process)


@op(allow=Level.OPERATOR, tool=False)
async def note_schedule_end(
    ctx: Ctx,
    plan: PlanName,
    status: Annotated[int, Field(ge=0, le=255, description="The exit status of the execution.")],
    outcome: Annotated[str, Field(max_length=2_000, description="What came of it, in a sentence.")],
) -> Ok:
    """Note what came of an execution that was scheduled; its process does that itself."""
    await ctx.write(lambda tx: _end(tx, plan, status, outcome))
    return Ok()


@duty("starting what is scheduled", 1.0, wakes=True)
async def start_due(ctx: Ctx) -> None:
    """Start the executions that are due, if it is this server's turn; and those of this machine again that ended
    without an account."""
    machine = ctx.local.machine

    def question(tx: Reader) -> tuple[list[Row], list[Row]]:
        due = tx.all(SQL.due, now=tx.now) if ctx.has_turn else []
        return due, tx.all(SQL.under_way, machine=machine.only)

    due, under_way = await ctx.store.read_inline(question)
    for row in under_way:
        if row["process"] is None or await asyncio.to_thread(_is_gone, row["process"]):
            await _start(ctx, await ctx.of(SYSTEM).write(partial(_again, plan=row["plan"])))
    for row in due:
        await _start(ctx, await ctx.of(SYSTEM).write(partial(_begin, plan=row["plan"], machine=machine.name)))


def _begin(tx: Tx, plan: str, machine: str) -> Row | None:
    """Store that a plan is carried out now, and when it is next; None: it is not carried out now."""
    row = tx.one(SQL.get, plan=plan)
    if row is None or row["next_at"] is None or row["next_at"] > tx.now:
        return None
    due, now = row["next_at"] / SECOND, tx.now / SECOND
    following = rules.next_start(row["at"], row["every"], due, now)
    tx.run(SQL.advance, plan=plan, next=None if following is None else int(following * SECOND))
    late = int(now - due)
    is_late = late > LATE_SECONDS
    if row["started_at"] is not None and row["ended_at"] is None:
        tx.emit("schedule.missed", f"schedule:{plan}", seconds=late, reason="the one before is still under way")
        return None
    if is_late and row["missed"] == "skip":
        tx.emit("schedule.missed", f"schedule:{plan}", seconds=late, reason="no server ran, or the machine slept")
        return None
    until = json.loads(row["options"])["until"]
    ends = None if until is None else int(rules.coming(until, now) * SECOND)
    tx.run(SQL.begin, plan=plan, due=row["next_at"], now=tx.now, until=ends, machine=machine)
    tx.emit("schedule.started", f"schedule:{plan}", late_seconds=late if is_late else 0)
    return tx.one(SQL.get, plan=plan)


def _again(tx: Tx, plan: str) -> Row | None:
    """Store that an execution is started again which ended without an account; None: it is not."""
    row = tx.one(SQL.get, plan=plan)
    if row is None or row["ended_at"] is not None:
        return None
    if row["until_at"] is not None and row["until_at"] <= tx.now:
        _end(tx, plan, None, "It was ended before its time was over, and not started again.")
        return None
    if row["starts"] >= MOST_STARTS:
        _end(tx, plan, None, f"It ended {MOST_STARTS} times without an account. Its log may say why.")
        return None
    tx.run(SQL.again, plan=plan)
    tx.emit("schedule.resumed", f"schedule:{plan}", starts=row["starts"] + 1)
    return tx.one(SQL.get, plan=plan)


def _end(tx: Tx, plan: str, status: int | None, outcome: str) -> None:
    if tx.one(SQL.end, plan=plan, now=tx.now, status=status, outcome=outcome):
        tx.emit("schedule.ended", f"schedule:{plan}", status=status, outcome=outcome)


async def _start(ctx: Ctx, row: Row | None) -> None:
    """Start the process of an execution that is stored."""
    if row is None:
        return
    plan = row["plan"]
    try:
        process = await asyncio.to_thread(_spawn, ctx, row)
    except WorkbenchError as error:
        reason = error.message
        await ctx.of(SYSTEM).write(lambda tx: _end(tx, plan, None, reason))
    else:
        await ctx.of(SYSTEM).write(lambda tx: tx.run(SQL.started, plan=plan, process=process))


def _spawn(ctx: Ctx, row: Row) -> str | None:
    """Start `workbench run`, which goes on when the server ends; its identity, or None if it has ended. Blocks.

    Raises:
        Unavailable: ``SPAWN_FAILED``.
    """
    settings, options = ctx.settings, json.loads(row["options"])
    argv = [sys.executable, "-P", "-m", "workbench.cli", "run", "--project", str(settings.project), "--scheduled"]
    argv += [f"--{name}={options[name]}" for name in ("staff", "integrate", "budget") if options[name]]
    if row["until_at"] is not None:
        argv.append(f"--until={datetime.fromtimestamp(row['until_at'] / SECOND):{rules.MOMENT}}")
    argv += [*(["--partly"] if options["partly"] else []), "--", row["plan"]]
    log = settings.execution_log(row["plan"])
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log.unlink(missing_ok=True)  # it is that of the last execution
    env = {name: value for name, value in os.environ.items() if name not in OF_THE_SERVER}
    started = ctx.local.processes.start(argv, cwd=settings.project, env=env, log=log)
    with suppress(psutil.NoSuchProcess):
        return process_identity(started.pid)
    return None


def _is_gone(identity: str) -> bool:
    """Whether a process does not run, as far as can be seen from here. Blocks."""
    return has_ended(identity) is not False


def _terminate(identity: str) -> bool:
    """Tell an execution to end, if it runs on this machine; whether it was told. Blocks."""
    reference = process_named(identity)
    with suppress(psutil.NoSuchProcess):
        if reference is not None and (process := reference.find()) is not None:
            process.terminate()
            return True
    return False


def _require(tx: Tx, plan: str) -> Row:
    row = tx.one(SQL.get, plan=plan)
    if row is None:
        raise NotFound(
            "SCHEDULE_NOT_FOUND", f"{plan} is not scheduled.", Hint("list_schedules", "{} lists what is scheduled.")
        )
    return row


def _schedule(row: Row) -> Schedule:
    stored: dict[str, Any] = {name: row[name] for name in Schedule.model_fields if name in row.keys()}  # noqa: SIM118
    return Schedule(**stored, **json.loads(row["options"]))
