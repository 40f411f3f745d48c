"""Changing existing tasks: add subtasks, cancel, retry, reassign, reprioritise (spec 3)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict
from workbench.model import Int64, Level, OnFailure, TaskState
from workbench.ops import SAID, Caller, Command, Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.lifecycle import TaskAction
from workbench.services.tasks import attempts
from workbench.services.tasks import dependencies as graph
from workbench.services.tasks.creation import add_task, newly_created, reservable
from workbench.services.tasks.rows import require_own_row, require_task, reserve, visible_row, waits_of
from workbench.services.tasks.task import (
    ContextRef,
    Dependencies,
    Description,
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
        )
        made = add_task(tx, ctx, new, within=parent)
        if blocks_parent:
            graph.add(tx, parent, made)
        return newly_created(tx, made, new)

    return await ctx.write(change)


def _parent(tx: Reader, caller: Caller, task_id: int, waits: bool) -> Row:
    """The row of a task to which the caller may add a subtask, and which may wait for it if `waits`.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Refused: ``FORBIDDEN``.
    """
    if caller.level >= Level.PLANNER and not waits:
        return visible_row(tx, caller, task_id)
    return graph.shapeable(tx, caller, task_id)


@op(allow=Level.PLANNER, destructive=True)
async def cancel_task(ctx: Ctx, task_id: TaskId, reason: Reason = "") -> TaskInfo:
    """Cancel your task and its unfinished subtasks. Agents that hold any of them lose their leases."""

    def change(tx: Tx) -> TaskInfo:
        lifecycle.step(require_own_row(tx, ctx.caller, task_id)["status"], TaskAction.CANCEL)
        graph.cancel(tx, [(task_id, reason)])
        return require_task(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.PLANNER)
async def retry_task(
    ctx: Ctx,
    task_id: TaskId,
    reason: Reason = "",
    max_retries: Annotated[Retries, Field(description="Retries from now on; null: as before.")] = None,
) -> TaskInfo:
    """Retry your failed or cancelled task, with its retry count reset.

    A task with `on_failure=cancel` is refused with `DEPENDENCY_DEAD` while a dependency has failed or is cancelled:
    retry the dependencies that the error names first. One whose worktree is gone is refused with `WORKTREE_CLOSED`:
    create the worktree anew from its branch first.
    """

    def change(tx: Tx) -> TaskInfo:
        row = require_own_row(tx, ctx.caller, task_id)
        require_possible(tx, row)
        revive(tx, row, reason)
        if max_retries is not None:
            tx.run(SQL.set_retries, task_id=task_id, max_retries=max_retries)
        return require_task(tx, task_id)

    return await ctx.write(change)


def revive(tx: Tx, row: Row, reason: str) -> None:
    """Make a failed or cancelled task pending again in the caller's transaction, with its retry count reset.

    Raises:
        Conflict: ``WRONG_STATE``.
    """
    lifecycle.step(row["status"], TaskAction.RETRY)
    tx.run(SQL.revive, task_id=row["id"])
    graph.revived(tx, row["id"])
    tx.emit("task.revived", f"task:{row['id']}", session=row["session_id"], reason=reason)


def require_possible(tx: Reader, row: Row) -> None:
    """Refuse to retry a task that could never be done.

    Raises:
        Conflict: ``WORKTREE_CLOSED``, ``DEPENDENCY_DEAD``.
    """
    _require_worktree(tx, row)
    waits = waits_of(tx, row["id"])
    lifecycle.require_alive(row["on_failure"], {one["depends_on"]: one["status"] for one in waits})


def _require_worktree(tx: Reader, row: Row) -> None:
    """Refuse a task whose worktree was closed. One whose worktree was never created may wait for it.

    Raises:
        Conflict: ``WORKTREE_CLOSED``.
    """
    closed = tx.one(SQL.closed_worktree, name=row["worktree"])
    if closed is None:
        return
    name, branch = row["worktree"], closed["branch_name"]
    raise Conflict(
        "WORKTREE_CLOSED",
        f"Task {row['id']} works in the worktree {name}, which is {closed['status']}. Create it anew from its branch "
        f"first: create_worktree with name={name!r} and branch_name={branch!r} "
        f"(`workbench retry {row['id']} --recreate` does both).",
        worktree=name,
        branch=branch,
        status=closed["status"],
    )


@op(allow=Level.PLANNER)
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
        tx.run(SQL.prioritise, task_id=task_id, priority=priority)
        data = {"priority": priority, "before": row["priority"]}
        tx.emit("task.prioritised", f"task:{task_id}", session=row["session_id"], **data)
        return require_task(tx, task_id)

    return await ctx.write(change)


def restore_priority(tx: Tx, row: Row, before: int, undoes: int) -> None:
    """Set the priority that a task had before the event `undoes`."""
    tx.run(SQL.prioritise, task_id=row["id"], priority=before)
    data = {"priority": before, "before": row["priority"], "undoes": undoes}
    tx.emit("task.prioritised", f"task:{row['id']}", session=row["session_id"], **data)


def restore_reservation(tx: Tx, row: Row, before: str | None, undoes: int) -> None:
    """Reserve a pending task for the agent that it was reserved for before the event `undoes`.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``. Conflict: ``NOT_ADMITTED``, ``OTHER_SESSION``.
    """
    reserve(tx, row["id"], reservable(tx, before, row["session_id"]) if before else None)
    data = {"assigned_agent_id": before, "reason": "the change was undone", "held": False, "undoes": undoes}
    tx.emit("task.reassigned", f"task:{row['id']}", session=row["session_id"], **data)
