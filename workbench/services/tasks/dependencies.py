"""Dependencies: an acyclic graph that may change while tasks run, and what the end of a task means for its dependents.

`task_status.unmet` counts, for each task, the dependencies that it still waits for: its own, and those of the tasks
above it, which hold back their subtasks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict, Refused
from workbench.model import Int64, Level, OnFailure, TaskState
from workbench.ops import Caller, Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.lifecycle import SHOWN
from workbench.services.tasks.rows import (
    blockers,
    end_attempt,
    recount,
    require_own_row,
    require_row,
    require_task,
    visible_row,
)
from workbench.services.tasks.task import TaskInfo
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

LONGEST_ERROR = 1_000
"""Characters of the error of a task that is kept for the undoing of its cancellation."""

OtherTask = Annotated[Int64, Field(description="The id of the task that it waits for.")]


@op(allow=Level.WORKER, command="depend")
async def add_dependency(ctx: Ctx, task_id: TaskId, depends_on: OtherTask) -> TaskInfo:
    """Make a task wait for another. A held task continues, but cannot be completed before the other one."""

    def change(tx: Tx) -> TaskInfo:
        row = shapeable(tx, ctx.caller, task_id)
        visible_row(tx, ctx.caller, depends_on)
        add(tx, row, depends_on)
        return require_task(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.WORKER, command="depend --remove")
async def remove_dependency(ctx: Ctx, task_id: TaskId, depends_on: OtherTask) -> TaskInfo:
    """Remove a dependency. A worker cannot remove one from the task that it holds."""

    def change(tx: Tx) -> TaskInfo:
        row = shapeable(tx, ctx.caller, task_id)
        if ctx.caller.level < Level.PLANNER and row["assigned_agent_id"] == ctx.caller.agent:
            raise Refused("FORBIDDEN", f"You hold task {task_id}. Release it, or have a planner remove the dependency.")
        _require_open(row)
        if not tx.run(SQL.remove, task_id=task_id, on=depends_on):
            raise Conflict("NO_DEPENDENCY", f"Task {task_id} does not wait for {depends_on}.")
        recount(tx, task_id)
        tx.emit("task.dependency_removed", f"task:{task_id}", session=row["session_id"], depends_on=depends_on)
        return require_task(tx, task_id)

    return await ctx.write(change)


def add(tx: Tx, row: Row, depends_on: int) -> None:
    """Add an edge in the caller's transaction, unless it exists.

    Raises:
        Conflict: ``DEPENDENCY_CYCLE`` with `details.path`, ``WRONG_STATE`` (the task has ended), ``DEPENDENCY_DEAD``
            (with `on_failure=cancel`, a dependency that has failed or was cancelled).
        NotFound: ``TASK_NOT_FOUND``.
    """
    task_id = row["id"]
    _require_open(row)
    state = TaskState(require_row(tx, depends_on)["status"])
    subtree = {number for (number,) in tx.tuples(SQL.subtree, task_id=task_id)}
    if (way_back := _path(tx, depends_on, {task_id} if depends_on in subtree else subtree)) is not None:
        path = [task_id, *way_back]
        shown = path if len(path) <= SHOWN else [*path[: SHOWN // 2], "…", *path[-SHOWN // 2 :]]
        text = " → ".join(map(str, shown))
        why = (
            "" if path[-1] == task_id else f" Task {path[-1]} is a part of {task_id} and waits for what that waits for."
        )
        raise Conflict("DEPENDENCY_CYCLE", f"The tasks would wait for each other: {text}.{why}", path=path)
    if tx.run(SQL.add, task_id=task_id, on=depends_on):
        lifecycle.require_alive(row["on_failure"], {depends_on: state})
        recount(tx, task_id)
        tx.emit("task.dependency_added", f"task:{task_id}", session=row["session_id"], depends_on=depends_on)


def _require_open(row: Row) -> None:
    if row["status"] not in lifecycle.OPEN:
        text = f"Task {row['id']} is {row['status']}; its dependencies cannot change."
        raise Conflict("WRONG_STATE", text, status=row["status"])


def _path(tx: Reader, start: int, goals: Collection[int]) -> list[int] | None:
    """A shortest path from one task to one of others, including both; None if there is none.

    It goes along dependencies, and from a subtask to the tasks above it, whose dependencies it waits for.
    """
    if start in goals:
        return [start]
    came_from: dict[tuple[int, int], tuple[int, int]] = {}
    for task, is_above, following, leads_above in tx.tuples(SQL.steps_ahead, start=start):
        step = (following, leads_above)
        came_from.setdefault(step, (task, is_above))
        if following in goals and not leads_above:
            path = [step]
            while path[-1] != (start, 0):
                path.append(came_from[path[-1]])
            return [task_id for task_id, _ in reversed(path)]
    return None


def completed(tx: Tx, row: Row) -> None:
    """Update the dependents of a completed task: each has one unmet dependency fewer."""
    if row["awaited"]:
        tx.run(SQL.one_less, task_id=row["id"])


def ended_badly(tx: Tx, task_id: int) -> None:
    """Apply `on_failure` to the dependents of a failed task: they stay blocked, are cancelled, or ignore it."""
    recount(tx, task_id)  # it no longer holds back its subtasks
    cancel(tx, _consequences(tx, task_id))


def revived(tx: Tx, task_id: int) -> None:
    """Make the dependents of a revived task wait for it again.

    As after `add_dependency`, a held dependent continues, but cannot be completed before this task.
    """
    for row in tx.all(SQL.dependents, task_id=task_id):
        recount(tx, row["id"])
    recount(tx, task_id)


def open_below(tx: Reader, task_id: int) -> list[int]:
    """The open tasks below a task."""
    return [row["id"] for row in tx.all(SQL.subtree_open, task_id=task_id) if row["id"] != task_id]


def cancel(tx: Tx, doomed: list[tuple[int, str]]) -> list[int]:
    """Cancel tasks, each with a reason, and their open subtasks; then apply `on_failure` to their dependents.

    Returns:
        All that were cancelled, in this order.
    """
    cancelled: list[int] = []
    waiting = deque((root, root, reason) for root, reason in doomed)
    while waiting:
        cause, root, reason = waiting.popleft()
        for row in tx.all(SQL.subtree_open, task_id=root):
            cancelled.append(row["id"])
            tx.run(SQL.cancel, task_id=row["id"], reason=reason or None, now=tx.now)
            end_attempt(tx, row["id"], "cancelled", reason or None)
            data = {"reason": reason, "cause": cause, "before": _fields_before(row)}
            tx.emit("task.cancelled", f"task:{row['id']}", session=row["session_id"], **data)
            waiting.extend((cause, *doomed) for doomed in _consequences(tx, row["id"]))
    return cancelled


def restore_cancelled(tx: Tx, row: Row, before: Mapping[str, Any], undoes: int) -> None:
    """Make a cancelled task pending again as it was `before`, which its event has; `undoes` is the id of that event.

    Raises:
        Conflict: ``REMOVED_FROM_PLAN``.
    """
    require_planned(row)
    standing = {"not_before": before["not_before"], "error": before["error"]}
    tx.run(SQL.restore_cancelled, task_id=row["id"], **standing)
    revived(tx, row["id"])
    data = {"reason": "the cancellation was undone", "undoes": undoes}
    tx.emit("task.revived", f"task:{row['id']}", session=row["session_id"], **data)


def require_planned(row: Row) -> None:
    """Refuse to open a task again that an update of its plan removed: it would be in no plan.

    Raises:
        Conflict: ``REMOVED_FROM_PLAN``.
    """
    if row["plan"] is None and row["name"] is not None:
        text = f"Task {row['id']} ({row['name']}) was removed from its plan, and would be open in none."
        raise Conflict("REMOVED_FROM_PLAN", f"{text} Put it into the text of the plan, and update the plan.")


def _fields_before(row: Row) -> dict[str, Any]:
    """The fields of a task that a cancellation changes, for undoing it."""
    error = row["error_message"]
    return {"status": row["status"], "not_before": row["not_before"], "error": error and error[:LONGEST_ERROR]}


def _consequences(tx: Tx, task_id: int) -> list[tuple[int, str]]:
    """Unblock the dependents that ignore the end of a task, emit `task.blocked`, and return those to cancel."""
    doomed = []
    for row in tx.all(SQL.dependents, task_id=task_id):
        if row["on_failure"] == OnFailure.IGNORE:
            recount(tx, row["id"])
        elif row["status"] not in lifecycle.OPEN:
            continue
        elif row["on_failure"] == OnFailure.CANCEL:
            doomed.append((row["id"], f"task {task_id}, which it depends on, did not succeed"))
        else:
            tx.emit("task.blocked", f"task:{row['id']}", session=row["session_id"], by=task_id)
    return doomed


def shapeable(tx: Reader, caller: Caller, task_id: int) -> Row:
    """The row of a task whose dependencies the caller may change.

    A planner may change its own (see `is_own`); a worker, the task it holds and those below.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Refused: ``FORBIDDEN``.
    """
    if caller.level >= Level.PLANNER:
        return require_own_row(tx, caller, task_id)
    row = visible_row(tx, caller, task_id)
    if tx.one(SQL.held_above, task_id=task_id, agent=caller.agent):
        return row
    raise Refused("FORBIDDEN", f"You do not hold task {task_id}, nor a task above it.")


def require_none_open(tx: Reader, row: Row) -> None:
    """Refuse to complete a task with unmet dependencies, such as subtasks that its holder created.

    Raises:
        Conflict: ``DEPENDENCIES_OPEN``.
    """
    if row["unmet"]:
        waits = blockers(tx, row)
        raise Conflict(
            "DEPENDENCIES_OPEN",
            f"Task {row['id']} waits for {', '.join(map(str, waits))}. Release it; claim it again when they are done.",
            blocked_by=list(waits),
        )
