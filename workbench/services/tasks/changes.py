"""Changing existing tasks: add subtasks, cancel, retry, reassign, reprioritise (spec 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict, Hint
from workbench.model import Int64, Level, OnFailure, TaskState
from workbench.ops import SAID, Caller, Command, Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.lifecycle import TaskAction
from workbench.services.tasks import approval, attempts
from workbench.services.tasks import dependencies as graph
from workbench.services.tasks.creation import add_task, named_tasks, newly_created, parent_that_is_over, reservable
from workbench.services.tasks.expiry import end_pause
from workbench.services.tasks.rows import (
    may_change,
    require_own_row,
    require_row,
    require_task,
    reserve,
    visible_row,
    waits_of,
)
from workbench.services.tasks.task import (
    ContextRef,
    Dependencies,
    Description,
    Due,
    Metadata,
    NewlyCreated,
    NewTask,
    NoRetry,
    Policy,
    Priority,
    Retries,
    Run,
    TaskInfo,
    Title,
)
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

Reason = Annotated[str, SAID, Field(max_length=1_000, description="Recorded in the task's log.")]


@op(allow=Level.WORKER)
async def create_subtask(
    ctx: Ctx,
    parent_task_id: Annotated[
        Int64, Field(description="A task you hold, or one below it; a planner may name any that it sees.")
    ],
    title: Title,
    description: Description = "",
    persona_id: Annotated[str | None, Field(description="The parent's when null.")] = None,
    priority: Annotated[Priority | None, Field(description="The parent's when null.")] = None,
    dependencies: Dependencies = [],
    target_worktree: Annotated[str | None, Field(description="The parent's when null.")] = None,
    run: Run = None,
    max_retries: Retries = None,
    context_ref: ContextRef = None,
    metadata: Metadata = {},
    on_failure: Policy = OnFailure.BLOCK,
    no_retry: NoRetry = [],
    due: Due = None,
    blocks_parent: Annotated[
        bool,
        Field(description="Make the parent, your task, wait for it: release it now, and claim it again afterwards."),
    ] = False,
) -> NewlyCreated:
    """Add a subtask to a task you hold; other agents may claim it."""

    def change(tx: Tx) -> NewlyCreated:
        parent = _parent(tx, ctx.caller, parent_task_id, blocks_parent)
        new = NewTask(
            title=title,
            description=description,
            persona_id=persona_id or parent["persona_id"],
            priority=parent["priority"] if priority is None else priority,
            dependencies=dependencies,
            parent_task_id=parent_task_id,
            target_worktree=target_worktree or parent["worktree"] or None,
            run=run,
            max_retries=max_retries,
            context_ref=context_ref,
            metadata=metadata,
            on_failure=on_failure,
            no_retry=no_retry,
            due=due,
        )
        task_id = add_task(tx, ctx, new, within=parent)
        if blocks_parent:
            graph.add(tx, parent, task_id)
        return newly_created(tx, ctx, task_id, new)

    return await ctx.write(change)


def _parent(tx: Reader, caller: Caller, task_id: int, waits: bool) -> Row:
    """The row of a task to which the caller may add a subtask, and which may wait for it if `waits`.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Refused: ``FORBIDDEN``.
    """
    if caller.level >= Level.PLANNER and not waits:
        return visible_row(tx, caller, task_id)
    return graph.shapeable(tx, caller, task_id)


class Cancelled(TaskInfo):
    """A task that is cancelled, or was over. `also_cancelled`: its open subtasks, and what waited for any of them with
    `on_failure=cancel`.
    """

    also_cancelled: list[int]


@op(allow=Level.PLANNER, destructive=True, command="cancel")
async def cancel_task(ctx: Ctx, task_id: TaskId, reason: Reason = "") -> Cancelled:
    """Cancel your task and its unfinished subtasks. Agents that hold any of them lose their leases.

    Of a task that is over, the unfinished subtasks are cancelled.
    """

    def change(tx: Tx) -> Cancelled:
        status = require_own_row(tx, ctx.caller, task_id)["status"]
        if status in lifecycle.OPEN or not graph.open_below(tx, task_id):
            lifecycle.step(status, TaskAction.CANCEL)
        others = [other for other in graph.cancel(tx, [(task_id, reason)]) if other != task_id]
        return Cancelled.model_construct(**dict(require_task(tx, task_id)), also_cancelled=others)

    return await ctx.write(change)


class Retried(TaskInfo):
    """A task that is retried. Of the tasks that were cancelled with it, `also_retried` are retried as well, and
    `stay_cancelled` are not. `note` says what keeps it from being what it was; it is empty if nothing does.
    """

    also_retried: list[int]
    stay_cancelled: list[int]
    note: str


@op(allow=Level.PLANNER, command="retry")
async def retry_task(
    ctx: Ctx,
    task_id: TaskId,
    reason: Reason = "",
    max_retries: Annotated[Retries, Field(description="Retries from now on; null: as before.")] = None,
    also_cancelled: Annotated[
        bool, Field(description="Retry also its subtasks and tasks after it that were cancelled with it.")
    ] = False,
) -> Retried:
    """Retry your failed or cancelled task, with its retry count reset; or now, if it pauses before a retry.

    Refused with `DEPENDENCY_DEAD` (retry what the error names first), `WORKTREE_CLOSED` (create the worktree anew from
    its branch first) or `REMOVED_FROM_PLAN`.
    """

    def change(tx: Tx) -> Retried:
        row = require_own_row(tx, ctx.caller, task_id)
        approval.require_not_left_out(ctx.caller, row)
        together = [one["id"] for one in tx.all(SQL.cancelled_with, task_id=task_id, at=row["completed_at"])]
        pauses = row["status"] == TaskState.PENDING and row["not_before"] is not None
        if pauses:
            end_pause(tx, task_id, row["session_id"])
        else:
            require_possible(tx, row)
            revive(tx, row, reason)
        others = [
            one
            for one in together
            if also_cancelled
            and may_change(tx, ctx.caller, one)
            and not approval.is_left_out(ctx.caller, require_row(tx, one))
        ]
        for other in others:
            revive(tx, require_row(tx, other), reason)
        for other in others:
            require_possible(tx, require_row(tx, other))
        if max_retries is not None:
            used_up = row["retry_count"] if pauses else 0
            tx.run(SQL.set_retries, task_id=task_id, max_retries=used_up + max_retries)
        stay = [one for one in together if one not in others]
        values: dict[str, Any] = {"also_retried": others, "stay_cancelled": stay, "note": _retry_note(tx, row, stay)}
        return Retried.model_construct(**dict(require_task(tx, task_id)), **values)

    return await ctx.write(change)


def _retry_note(tx: Reader, row: Row, stay: Sequence[int]) -> str:
    """What a person should know of a task that is retried: what stays cancelled, and that its parent is over."""
    notes = []
    if stay:
        notes.append(f"{named_tasks(stay)}, cancelled with it, {'stays' if len(stay) == 1 else 'stay'} cancelled.")
    if over := parent_that_is_over(tx, row["parent_id"]):
        notes.append(over)
    return " ".join(notes)


@op(allow=Level.PLANNER, command=Command("reopen TASK_ID", "Task {task_id} is open again."))
async def reopen_task(ctx: Ctx, task_id: TaskId, reason: Reason = "") -> TaskInfo:
    """Make your completed task pending again, to be done once more. Tasks that have not ended wait for it again.

    Its result stays until it is completed again. One whose worktree is gone is refused with `WORKTREE_CLOSED`.
    """

    def change(tx: Tx) -> TaskInfo:
        row = require_own_row(tx, ctx.caller, task_id)
        lifecycle.step(row["status"], TaskAction.REOPEN)
        require_possible(tx, row)
        make_pending(tx, row, reason)
        return require_task(tx, task_id)

    return await ctx.write(change)


def revive(tx: Tx, row: Row, reason: str) -> None:
    """Make a failed or cancelled task pending again in the caller's transaction, with its retry count reset.

    Raises:
        Conflict: ``WRONG_STATE``.
    """
    lifecycle.step(row["status"], TaskAction.RETRY)
    make_pending(tx, row, reason)


def make_pending(tx: Tx, row: Row, reason: str) -> None:
    """Make a task pending that has ended; what waits for it waits again.

    Raises:
        Conflict: ``REMOVED_FROM_PLAN``.
    """
    graph.require_planned(row)
    tx.run(SQL.revive, task_id=row["id"])
    graph.revived(tx, row["id"])
    tx.emit("task.revived", f"task:{row['id']}", session=row["session_id"], reason=reason)


def require_possible(tx: Reader, row: Row) -> None:
    """Refuse to open a task again that could never be done.

    Raises:
        Conflict: ``WORKTREE_CLOSED``, ``DEPENDENCY_DEAD``.
    """
    _require_worktree(tx, row)
    require_alive(tx, row)


def require_alive(tx: Reader, row: Row) -> None:
    """Refuse to retry a task that the end of a dependency would cancel at once.

    Raises:
        Conflict: ``DEPENDENCY_DEAD``.
    """
    waits = waits_of(tx, row["id"])
    lifecycle.require_alive(row["on_failure"], {wait["depends_on"]: wait["status"] for wait in waits})


def closed_worktree(tx: Reader, name: str | None) -> Row | None:
    """The branch and the status of the worktree of this name if it is closed, and was not created anew."""
    return tx.one(SQL.closed_worktree, name=name)


def _require_worktree(tx: Reader, row: Row) -> None:
    """Refuse a task whose worktree was closed. One whose worktree was never created may wait for it.

    Raises:
        Conflict: ``WORKTREE_CLOSED``.
    """
    closed = closed_worktree(tx, row["worktree"])
    if closed is None:
        return
    name, branch, retry = row["worktree"], closed["branch_name"], f"`workbench retry {row['id']} --recreate`"
    both = f" ({retry} does both)" if row["status"] in lifecycle.DEAD else ""
    raise Conflict(
        "WORKTREE_CLOSED",
        f"Task {row['id']} works in the worktree {name}, which is {closed['status']}.",
        Hint(
            "create_worktree",
            f"Create it anew from its branch first: {{}} with name={name!r} and branch_name={branch!r}{both}.",
            f"Create it anew from its branch first: {retry} does both." if both else "",
        ),
        worktree=name,
        branch=branch,
        status=closed["status"],
    )


@op(allow=Level.PLANNER, command="assign")
async def reassign_task(
    ctx: Ctx,
    task_id: TaskId,
    assigned_agent_id: Annotated[str | None, Field(description="Only this agent may claim it; null: any agent.")],
    reason: Reason = "",
) -> TaskInfo:
    """Reserve your task for an agent, or lift the reservation. Its holder loses it; no retry is used up."""

    def change(tx: Tx) -> TaskInfo:
        row = require_own_row(tx, ctx.caller, task_id)
        lifecycle.step(row["status"], TaskAction.REASSIGN)
        agent = reservable(tx, assigned_agent_id, row["session_id"]) if assigned_agent_id else None
        if row["status"] != TaskState.PENDING:
            if agent is not None and agent == row["assigned_agent_id"]:
                raise Conflict("ALREADY_THEIRS", f"{assigned_agent_id} already holds task {task_id}.")
            attempts.put_back(tx, row, "reassigned", reason)
        before = tx.one(SQL.reservation, task_id=task_id)
        reserve(tx, task_id, agent)
        held = row["status"] != TaskState.PENDING
        data = {"assigned_agent_id": assigned_agent_id, "reason": reason, "held": held}
        former = before["agent_id"] if before else None
        tx.emit("task.reassigned", f"task:{task_id}", session=row["session_id"], before=former, **data)
        return require_task(tx, task_id)

    return await ctx.write(change)


@op(
    allow=Level.PLANNER,
    command=Command("priority TASK_ID NUMBER", "Task {task_id} has priority {priority}.", names={"NUMBER": "priority"}),
)
async def set_priority(ctx: Ctx, task_id: TaskId, priority: Priority) -> TaskInfo:
    """Set the priority of your task. Tasks with a higher priority are claimed first."""

    def change(tx: Tx) -> TaskInfo:
        row = require_own_row(tx, ctx.caller, task_id)
        if row["status"] not in lifecycle.OPEN:
            text = f"Task {task_id} is {row['status']}; its priority cannot change."
            raise Conflict("WRONG_STATE", text, status=row["status"])
        _prioritise(tx, row, priority)
        return require_task(tx, task_id)

    return await ctx.write(change)


def restore_priority(tx: Tx, row: Row, before: int, undoes: int) -> None:
    """Set the priority that a task had before the event `undoes`."""
    _prioritise(tx, row, before, undoes=undoes)


def _prioritise(tx: Tx, row: Row, priority: int, **data: int) -> None:
    tx.run(SQL.prioritise, task_id=row["id"], priority=priority)
    data = {"priority": priority, "before": row["priority"], **data}
    tx.emit("task.prioritised", f"task:{row['id']}", session=row["session_id"], **data)


def restore_reservation(tx: Tx, row: Row, before: str | None, undoes: int) -> None:
    """Reserve a pending task for the agent that it was reserved for before the event `undoes`.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``. Conflict: ``NOT_ADMITTED``, ``OTHER_SESSION``.
    """
    reserve(tx, row["id"], reservable(tx, before, row["session_id"]) if before else None)
    data = {"assigned_agent_id": before, "reason": "the change was undone", "held": False, "undoes": undoes}
    tx.emit("task.reassigned", f"task:{row['id']}", session=row["session_id"], **data)
