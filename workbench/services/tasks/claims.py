"""Doing tasks: claim, heartbeat, progress, complete, fail, release; and what happens when a lease runs out.

A lease is the right to work on a task until a time; an attempt is one claim. Whoever does not hold
the lease any more is told `LEASE_LOST` and changes nothing.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import BadInput, Conflict, Refused
from workbench.model import Level, Micros, TaskState, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules import lifecycle
from workbench.rules.lifecycle import Action
from workbench.services.agents import registration
from workbench.services.tasks import dependencies
from workbench.services.tasks.new_task import bounded_json
from workbench.services.tasks.rows import (
    end_attempt,
    line_of,
    not_claimable,
    require_line,
    require_row,
    require_task,
    require_task_line,
    reserve,
    seen,
    task_lines,
    task_of,
)
from workbench.services.tasks.task import Task, TaskLine
from workbench.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

OwnId = Annotated[str | None, Field(description="Your own id, if you like; it must be yours.")]
AttemptNumber = Annotated[int | None, Field(description="The attempt you were given; refused when it is not current.")]
WaitSeconds = Annotated[float, Field(ge=0, description="Wait this long for a task to become claimable.")]


class Claim(Wire):
    """What a claim gave: the task under its lease, or null when there is none to be had."""

    task: Task | None


class Beat(Wire):
    """The tasks you hold, and when the first of their leases runs out."""

    holding: list[int]
    lease_expires_at: Micros | None


class Available(Wire):
    """Tasks that can be claimed, best first."""

    tasks: list[TaskLine]


class Work(Wire):
    """A heartbeat's answer: what you hold, and what you could claim, best first."""

    holding: list[TaskLine]
    available: list[TaskLine]
    lease_expires_at: Micros | None


@op(allow=Level.WORKER)
async def heartbeat_and_get_tasks(
    ctx: Ctx,
    agent_id: OwnId = None,
    persona_id: Annotated[str | None, Field(description="Your own persona, if you like.")] = None,
    wait_seconds: WaitSeconds = 0,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
) -> Work:
    """Renew all your leases and see what you hold and what you could claim, best first."""
    me = require_self(ctx.caller, agent_id, persona_id)
    work = await ctx.write(lambda tx: _beat(tx, ctx.caller, me, limit))
    if work.holding or work.available or not wait_seconds:
        return work
    return await _until_work(ctx, me, min(wait_seconds, ctx.settings.wait_limit_seconds), limit)


@op(allow=Level.WORKER, tool=False)
async def heartbeat(ctx: Ctx, agent_id: OwnId = None) -> Beat:
    """Say that you are alive: all your leases are renewed."""
    me = require_self(ctx.caller, agent_id)

    def change(tx: Tx) -> Beat:
        _renew(tx, me)
        held = tx.all(SQL.held_by, agent=me)
        return Beat(
            holding=[row["id"] for row in held],
            lease_expires_at=min((row["lease_expires_at"] for row in held), default=None),
        )

    return await ctx.write(change)


@op(allow=Level.WORKER, reads=True, tool=False)
async def get_available_tasks(
    ctx: Ctx, agent_id: OwnId = None, limit: Annotated[int, Field(ge=1, le=500)] = 10
) -> Available:
    """What you could claim now, best first; nothing is renewed or claimed."""
    me = require_self(ctx.caller, agent_id)
    return Available(tasks=await ctx.read(lambda tx: _available(tx, ctx.caller, me, limit)))


@op(allow=Level.WORKER)
async def claim_task(
    ctx: Ctx,
    task_id: Annotated[int | None, Field(description="Which task; the best one for you when null.")] = None,
    agent_id: OwnId = None,
) -> Claim:
    """Claim a task under a lease: the one you name, or what you already hold, else the best for you."""
    me = require_self(ctx.caller, agent_id)
    return await ctx.write(lambda tx: _claim(tx, ctx.caller, me, task_id))


@op(allow=Level.WORKER)
async def start_task(ctx: Ctx, task_id: int, attempt: AttemptNumber = None) -> Task:
    """Say that work on a claimed task has begun. Progress and completion imply it."""

    def change(tx: Tx) -> Task:
        row = _held(tx, ctx.caller, task_id, attempt)
        lifecycle.step(row["status"], Action.START)
        _start(tx, row)
        return require_task(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.WORKER)
async def report_task_progress(
    ctx: Ctx,
    task_id: int,
    progress_note: Annotated[str, Field(max_length=10_000)] = "",
    percent_complete: Annotated[int | None, Field(ge=0, le=100)] = None,
    agent_id: OwnId = None,
    level: Literal["debug", "info", "warn", "error"] = "info",
    attempt: AttemptNumber = None,
) -> TaskLine:
    """Tell how a task you hold goes: a note, a percentage, or both. Renews its lease."""
    me = require_self(ctx.caller, agent_id)

    def change(tx: Tx) -> TaskLine:
        row = _held(tx, ctx.caller, task_id, attempt)
        _start(tx, row)
        percent = row["progress"] if percent_complete is None else percent_complete
        tx.run(SQL.progress, task_id=task_id, progress=percent, now=tx.now, lease_us=row["lease_us"])
        if progress_note:
            tx.run(SQL.log, task_id=task_id, agent=me, level=level, message=progress_note, now=tx.now)
        told = {"progress": percent, "note": progress_note[:500], "level": level}
        tx.emit("task.progressed", f"task:{task_id}", session=row["session_id"], **told)
        return require_task_line(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.WORKER)
async def complete_task(
    ctx: Ctx,
    task_id: int,
    result_data: Annotated[Any, Field(description="The result, as JSON.")] = None,
    artifacts: Annotated[
        tuple[str, ...], Field(max_length=1_000, description="Files, commits or addresses made.")
    ] = (),
    attempt: AttemptNumber = None,
) -> TaskLine:
    """Finish a task you hold, with its result. What waited for it becomes claimable."""
    result = bounded_json(result_data, ctx.settings)
    made = bounded_json(artifacts, ctx.settings)

    def change(tx: Tx) -> TaskLine:
        row = _held(tx, ctx.caller, task_id, attempt)
        lifecycle.step(row["status"], Action.COMPLETE)
        dependencies.require_none_open(tx, row)
        if row["status"] == TaskState.CLAIMED:
            _tell_start(tx, row)
        tx.run(SQL.complete, task_id=task_id, result=result, artifacts=made, now=tx.now)
        tx.run(SQL.complete_attempt, task_id=task_id, attempt=row["attempt"], now=tx.now)
        dependencies.completed(tx, row)
        tx.emit("task.completed", f"task:{task_id}", session=row["session_id"], attempt=row["attempt"])
        changed = {"status": TaskState.COMPLETED, "progress": 100, "error_message": None}
        return line_of({**row, **changed})

    return await ctx.write(change)


@op(allow=Level.WORKER)
async def fail_task(
    ctx: Ctx,
    task_id: int,
    error_message: Annotated[str, Field(min_length=1, max_length=10_000)],
    retryable: Annotated[bool, Field(description="Whether another attempt could succeed.")] = True,
    error_class: Annotated[
        str | None, Field(max_length=200, description="Kind of error, such as ValueError; see no_retry of the task.")
    ] = None,
    attempt: AttemptNumber = None,
) -> TaskLine:
    """Give a task you hold back as failed. It is tried again after a pause while retries are left."""

    def change(tx: Tx) -> TaskLine:
        row = _held(tx, ctx.caller, task_id, attempt)
        lifecycle.step(row["status"], Action.FAIL)
        failure = Failure("failed", error_message, error_class, retryable)
        _after_failure(tx, ctx.settings, row, failure, ctx.random())
        return require_task_line(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.WORKER)
async def release_task(
    ctx: Ctx,
    task_id: int,
    reason: Annotated[str, Field(max_length=1_000)] = "",
    attempt: AttemptNumber = None,
) -> TaskLine:
    """Give a task you hold back unfinished; it is claimable again at once and no retry is used up."""

    def change(tx: Tx) -> TaskLine:
        row = _held(tx, ctx.caller, task_id, attempt)
        lifecycle.step(row["status"], Action.RELEASE)
        put_back(tx, row, "released", reason)
        return require_task_line(tx, task_id)

    return await ctx.write(change)


def release_all(tx: Tx, agent: str, reason: str) -> None:
    """Give back everything an agent holds (its process ended, or its admission was taken away)."""
    for row in tx.all(SQL.held_by, agent=agent):
        put_back(tx, row, "released", reason)


def unreserve(tx: Tx, agent: str, reason: str) -> None:
    """Give what waits for an agent that will not come back to whoever else may claim it."""
    for row in tx.all(SQL.reserved_for, agent=agent):
        reserve(tx, row["id"], None)
        told = {"assigned_agent_id": None, "reason": reason}
        tx.emit("task.reassigned", f"task:{row['id']}", session=row["session_id"], **told)


def expire(tx: Tx, settings: Settings, random: float) -> int:
    """Send tasks whose lease ran out back, and wake those whose pause is over; how many leases ended."""
    ended = 0
    for row in tx.all(SQL.expired, now=tx.now):
        if tx.one(SQL.is_held, task_id=row["id"]):  # not cancelled by the end of one before it
            _after_failure(tx, settings, row, Failure("expired", "the lease ran out"), random)
            ended += 1
    for row in tx.all(SQL.rested, now=tx.now):
        tx.run(SQL.wake, task_id=row["task_id"])
        tx.emit("task.rested", f"task:{row['task_id']}", session=row["session_id"] or None)
    return ended


def next_deadline(tx: Reader) -> int | None:
    """When the next lease or pause ends, in microseconds UTC."""
    row = tx.one(SQL.next_deadline)
    at = row["at"] if row else None
    return None if at is None else int(at)


def require_self(caller: Caller, agent_id: str | None, persona_id: str | None = None) -> str:
    """The caller's internal id; the ids that spec 3 has as arguments must be the caller's own.

    Raises:
        Refused: ``FORBIDDEN``. BadInput: ``AGENT_ONLY`` (the operator holds no leases).
    """
    if caller.agent is None:
        raise BadInput("AGENT_ONLY", "Only an agent can hold tasks. Call this with an agent's token.")
    if agent_id not in (None, caller.name):
        raise Refused("FORBIDDEN", f"You are {caller.name}, not {agent_id}. Leave agent_id out.")
    if persona_id is not None and persona_id.lower() != caller.persona:
        raise Refused("FORBIDDEN", f"Your persona is {caller.persona}, not {persona_id}.")
    return caller.agent


def _renew(tx: Tx, me: str) -> None:
    tx.run(SQL.renew, agent=me, now=tx.now)
    tx.run(SQL.beat, agent=me, now=tx.now)
    registration.activate(tx, me)


def _beat(tx: Tx, caller: Caller, me: str, limit: int) -> Work:
    _renew(tx, me)
    return _work(tx, caller, me, limit)


def _available(tx: Reader, caller: Caller, me: str, limit: int) -> list[TaskLine]:
    found = _candidates(tx, caller, me, limit)
    return task_lines(tx, [row["task_id"] for row in found])


def _work(tx: Reader, caller: Caller, me: str, limit: int) -> Work:
    held = tx.all(SQL.held_by, agent=me)
    return Work(
        holding=task_lines(tx, [row["id"] for row in held]),
        available=_available(tx, caller, me, limit),
        lease_expires_at=min((row["lease_expires_at"] for row in held), default=None),
    )


async def _until_work(ctx: Ctx, me: str, seconds: float, limit: int) -> Work:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    async with ctx.feed.subscribe("task.*") as events:
        while True:
            work = await ctx.read(lambda tx: _work(tx, ctx.caller, me, limit))
            left = deadline - loop.time()
            if work.available or work.holding or left <= 0 or await events.within(left) is None:
                return work


def _candidates(tx: Reader, caller: Caller, me: str, limit: int) -> list[Row]:
    """Reserved for me first, then unassigned ones of my persona; by priority, then age."""
    place = {"worktree": caller.worktree or "", "session": caller.session or ""}
    return tx.all(SQL.candidates, place | {"agent": me, "persona": caller.persona, "limit": limit})


def _claim(tx: Tx, caller: Caller, me: str, task_id: int | None) -> Claim:
    held = [row["id"] for row in tx.all(SQL.held_by, agent=me)]
    if held and task_id in (None, *held):
        return Claim(task=require_task(tx, task_id or held[0]))
    if task_id is not None:
        row = seen(tx, caller, task_id)
        taken = _take(tx, me, task_id) if _fits(row, caller, me) else None
        if taken is None:
            raise not_claimable(tx, row)
        return Claim(task=taken)
    while best := _candidates(tx, caller, me, 1):
        if taken := _take(tx, me, best[0]["task_id"]):
            return Claim(task=taken)
    return Claim(task=None)


def _fits(row: Row, caller: Caller, me: str) -> bool:
    if row["reserved_for"] is not None:
        return bool(row["reserved_for"] == me)
    return row["worktree"] in ("", caller.worktree) and row["persona_id"] == caller.persona


def _take(tx: Tx, me: str, task_id: int) -> Task | None:
    """Claim one task; None when it cannot be claimed now."""
    if not tx.run(SQL.claim, task_id=task_id, agent=me, now=tx.now):
        return None
    row = require_row(tx, task_id)
    tx.run(SQL.add_attempt, task_id=task_id, attempt=row["attempt"], agent=me, now=tx.now)
    tx.emit("task.claimed", f"task:{task_id}", session=row["session_id"], attempt=row["attempt"])
    return task_of(tx, row)


def _start(tx: Tx, row: Row) -> None:
    if row["status"] == TaskState.CLAIMED:
        tx.run(SQL.start, task_id=row["id"], now=tx.now)
        tx.run(SQL.start_attempt, task_id=row["id"], attempt=row["attempt"], now=tx.now)
        _tell_start(tx, row)


def _tell_start(tx: Tx, row: Row) -> None:
    tx.emit("task.started", f"task:{row['id']}", session=row["session_id"], attempt=row["attempt"])


def _held(tx: Reader, caller: Caller, task_id: int, attempt: int | None) -> Row:
    """The row of a task that the caller holds.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Conflict: ``LEASE_LOST``. BadInput: ``AGENT_ONLY``.
    """
    me = require_self(caller, None)
    row = require_line(tx, task_id)
    current = row["status"] in lifecycle.HELD and row["assigned_agent_id"] == me
    if current and attempt in (None, row["attempt"]):
        return row
    raise Conflict(
        "LEASE_LOST",
        f"You do not hold task {task_id} (it is {row['status']}, attempt {row['attempt']}). "
        "Stop working on it and ask for tasks again.",
        status=row["status"],
        attempt=row["attempt"],
    )


def put_back(tx: Tx, row: Row, outcome: str, reason: str) -> None:
    """Make a task that is held claimable again at once; no retry is used up."""
    tx.run(SQL.put_back, task_id=row["id"], not_before=None, retries=0, error=None)
    end_attempt(tx, row["id"], outcome, reason or None)
    tx.emit("task.released", f"task:{row['id']}", session=row["session_id"], attempt=row["attempt"], reason=reason)


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt went wrong."""

    outcome: Literal["failed", "expired"]
    error: str
    error_class: str | None = None
    retryable: bool = True


def _after_failure(tx: Tx, settings: Settings, row: Row, failure: Failure, jitter: float) -> None:
    end_attempt(tx, row["id"], failure.outcome, failure.error, failure.error_class)
    never = lifecycle.is_never_retried(failure.error_class, json.loads(row["no_retry"]))
    told = {"attempt": row["attempt"], "error": failure.error[:500], "error_class": failure.error_class}
    subject, session = f"task:{row['id']}", row["session_id"]
    retryable = failure.retryable and not never
    if lifecycle.after_failure(row["retry_count"], row["max_retries"], retryable) is TaskState.PENDING:
        wait = lifecycle.backoff(row["retry_count"], settings.retry_base_seconds, settings.retry_cap_seconds, jitter)
        tx.run(SQL.put_back, task_id=row["id"], not_before=tx.now + wait, retries=1, error=failure.error)
        kind = "task.retried" if failure.outcome == "failed" else "task.expired"
        tx.emit(kind, subject, session=session, **told, wait_us=wait)
    else:
        tx.run(SQL.give_up, task_id=row["id"], error=failure.error, now=tx.now)
        tx.emit("task.failed", subject, session=session, **told)
        dependencies.ended_badly(tx, row["id"])


def mend_leases(tx: Tx) -> None:
    """The host's clock was set: every lease gets the whole time it was given, and every pause ends.

    Otherwise a step forward would end all leases at once, and a step back would keep them for too long.
    """
    tx.run(SQL.mend_leases, now=tx.now)
    tx.run(SQL.mend_pauses, now=tx.now)
