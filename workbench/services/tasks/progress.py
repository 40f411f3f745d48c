"""Working on a held task: start, report progress, complete, fail, release (spec 3).

A caller that no longer holds the lease gets `LEASE_LOST`, and nothing changes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import Conflict
from workbench.model import Int64, Json, Level, TaskState
from workbench.ops import Caller, Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.lifecycle import TaskAction
from workbench.services import holds
from workbench.services.messages import inbox
from workbench.services.tasks import attempts, checks, dependencies
from workbench.services.tasks.attempts import AttemptEnding, Failure, after_failure, put_back
from workbench.services.tasks.claims import OwnId, require_self
from workbench.services.tasks.rows import end_attempt, line_of, require_line, require_task, require_task_line
from workbench.services.tasks.task import Finish, TaskInfo, TaskSummary, bounded_json
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
AttemptNumber = Annotated[Int64 | None, Field(description="The attempt you were given; no other.")]


@op(allow=Level.WORKER)
async def start_task(ctx: Ctx, task_id: TaskId, attempt: AttemptNumber = None) -> TaskInfo:
    """Mark a claimed task as in progress. Reporting progress or completing it implies this."""

    def change(tx: Tx) -> TaskInfo:
        row = held(tx, ctx.caller, task_id, attempt)
        lifecycle.step(row["status"], TaskAction.START)
        start(tx, row)
        return require_task(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.WORKER)
async def report_task_progress(
    ctx: Ctx,
    task_id: TaskId,
    progress_note: Annotated[str, Field(max_length=10_000, description="What you did, found or decided.")] = "",
    percent_complete: Annotated[int | None, Field(ge=0, le=100, description="How much of the task is done.")] = None,
    agent_id: OwnId = None,
    level: Annotated[Literal["debug", "info", "warn", "error"], Field(description="How serious the note is.")] = "info",
    attempt: AttemptNumber = None,
) -> TaskSummary:
    """Report progress on a task you hold: a note, a percentage, or both. Renews its lease."""
    me, note = require_self(ctx.caller, agent_id), ctx.secrets.masked(progress_note)

    def change(tx: Tx) -> TaskSummary:
        row = held(tx, ctx.caller, task_id, attempt)
        start(tx, row)
        percent = row["progress"] if percent_complete is None else percent_complete
        tx.run(SQL.progress, task_id=task_id, progress=percent, now=tx.now, lease_us=row["lease_us"])
        if note:
            tx.run(SQL.log, task_id=task_id, agent=me, level=level, message=note, now=tx.now)
        data = {"progress": percent, "note": note[:500], "level": level}
        tx.emit("task.progressed", f"task:{task_id}", session=row["session_id"], **data)
        return require_task_line(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.WORKER)
async def complete_task(
    ctx: Ctx,
    task_id: TaskId,
    result_data: Annotated[Json, Field(description="The result, as JSON, for the agents that need it.")] = None,
    artifacts: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        Field(max_length=1_000, description="What you made: files, commits, addresses."),
    ] = (),
    attempt: AttemptNumber = None,
) -> Finish:
    """Complete a task you hold, with its result. Tasks that waited only for it become claimable.

    In a worker's command, it takes effect when the command has ended and its work is committed; if it has a check, when
    that has passed.
    """
    for value in (result_data, artifacts):
        bounded_json(value, ctx.settings)
    ending = AttemptEnding(outcome="completed", result_data=result_data, artifacts=artifacts)
    return await _end_or_request(ctx, task_id, attempt, ending)


@op(allow=Level.WORKER)
async def fail_task(
    ctx: Ctx,
    task_id: TaskId,
    error_message: Annotated[
        str, Field(min_length=1, max_length=10_000, description="What failed and why, for the next attempt.")
    ],
    retryable: Annotated[bool, Field(description="Whether another attempt could succeed.")] = True,
    error_class: Annotated[
        str | None, Field(max_length=200, description="Error class, such as ValueError; see no_retry of the task.")
    ] = None,
    attempt: AttemptNumber = None,
) -> Finish:
    """Mark a task you hold as failed. While retries are left, it is retried after a pause.

    In a worker's command, it takes effect when the command has ended.
    """
    ending = AttemptEnding(outcome="failed", reason=error_message, retryable=retryable, error_class=error_class)
    return await _end_or_request(ctx, task_id, attempt, ending)


@op(allow=Level.WORKER)
async def release_task(
    ctx: Ctx,
    task_id: TaskId,
    reason: Annotated[str, Field(max_length=1_000, description="Why you cannot do it now.")] = "",
    attempt: AttemptNumber = None,
) -> Finish:
    """Release a task you hold. It is claimable again at once, and no retry is used up.

    In a worker's command, it takes effect when the command has ended.
    """
    return await _end_or_request(ctx, task_id, attempt, AttemptEnding(outcome="released", reason=reason))


async def _end_or_request(ctx: Ctx, task_id: int, attempt: int | None, ending: AttemptEnding) -> Finish:
    """End the attempt of a held task; if it is supervised, record that its command asks for that."""
    ending = ending.masked(ctx.secrets)

    def change(tx: Tx) -> Finish:
        row = held(tx, ctx.caller, task_id, attempt)
        open_ = dependencies.open_below(tx, row["id"]) if ending.outcome == "completed" else []
        terms = checks.terms_of(tx, row) if not row["supervised"] and ending.outcome == "completed" else None
        if terms and terms.is_checked:
            lifecycle.step(row["status"], TaskAction.COMPLETE)
            dependencies.require_none_open(tx, row)
            start(tx, row)
            checks.ask(tx, row, terms, None, ending)
            return Finish(**require_task_line(tx, row["id"]).model_dump(), takes_effect=CHECKED, open_subtasks=open_)
        if not row["supervised"]:
            judged = (terms and terms.failure) or ending
            return Finish(**end(tx, ctx, row, judged).model_dump(), takes_effect="now", open_subtasks=open_)
        lifecycle.step(row["status"], _ACTIONS[ending.outcome])
        if ending.outcome == "completed":
            dependencies.require_none_open(tx, row)
        attempts.request_end(tx, row, ending)
        return Finish(**line_of(tx, row).model_dump(), takes_effect="when the command has ended", open_subtasks=open_)

    return await ctx.write(change)


CHECKED: Literal["when its check has passed"] = "when its check has passed"
_ACTIONS = {"completed": TaskAction.COMPLETE, "failed": TaskAction.FAIL, "released": TaskAction.RELEASE}


def end(tx: Tx, ctx: Ctx, row: Row, ending: AttemptEnding) -> TaskSummary:
    """End the attempt of a held task.

    Raises:
        Conflict: ``WRONG_STATE``, ``DEPENDENCIES_OPEN``. BadInput: ``TOO_LARGE``.
    """
    lifecycle.step(row["status"], _ACTIONS[ending.outcome])
    if ending.usage is not None:
        tx.run(SQL.note_usage, ending.usage.model_dump(), task_id=row["id"], attempt=row["attempt"])
    if ending.outcome == "completed":
        return _complete(tx, ctx, row, ending)
    if ending.outcome == "failed":
        failure = Failure(
            "failed",
            ending.reason,
            ending.error_class,
            ending.retryable,
            ending.failure,
            ending.until,
            ending.is_of_program,
        )
        after_failure(tx, ctx.settings, row, failure, ctx.random())
    else:
        put_back(tx, row, "released", ending.reason)
    return require_task_line(tx, row["id"])


def _complete(tx: Tx, ctx: Ctx, row: Row, ending: AttemptEnding) -> TaskSummary:
    dependencies.require_none_open(tx, row)
    result = bounded_json(ending.result_data, ctx.settings)
    artifacts = bounded_json(ending.artifacts, ctx.settings)
    if row["status"] == TaskState.CLAIMED:
        _emit_started(tx, row)
    if row["supervised"]:
        holds.note_success(tx, row["assigned_agent_id"])
        inbox.note_completion(tx, row["assigned_agent_id"])
    values = {"task_id": row["id"], "result": result, "artifacts": artifacts, "evidence": ending.evidence}
    tx.run(SQL.complete, values, now=tx.now)
    end_attempt(tx, row["id"], "completed", None)
    dependencies.completed(tx, row)
    told = {"attempt": row["attempt"], "evidence": ending.evidence}
    tx.emit("task.completed", f"task:{row['id']}", session=row["session_id"], **told)
    now = {"status": TaskState.COMPLETED, "progress": 100, "error_message": None, "evidence": ending.evidence}
    return line_of(tx, {**row, **now})


def start(tx: Tx, row: Row) -> None:
    """Mark a held task as in progress, if it is not."""
    if row["status"] == TaskState.CLAIMED:
        tx.run(SQL.start, task_id=row["id"], now=tx.now)
        tx.run(SQL.start_attempt, task_id=row["id"], attempt=row["attempt"], now=tx.now)
        _emit_started(tx, row)


def _emit_started(tx: Tx, row: Row) -> None:
    tx.emit("task.started", f"task:{row['id']}", session=row["session_id"], attempt=row["attempt"])


def held(tx: Reader, caller: Caller, task_id: int, attempt: int | None) -> Row:
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
        "Stop working on it and claim another task.",
        status=row["status"],
        attempt=row["attempt"],
    )
