"""What waits for what: any graph without a cycle, changed while the work goes on, and what an end means for others.

`task_status.unmet` counts, for every task, the dependencies that it still waits for.
"""

from __future__ import annotations

from collections import deque

from workbench.errors import Conflict, Refused
from workbench.model import Int64, Level, OnFailure, TaskState
from workbench.ops import Caller, Ctx, op
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.lifecycle import SHOWN
from workbench.services.tasks.rows import blockers, end_attempt, require_row, require_task, visible_row
from workbench.services.tasks.task import Task
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


@op(allow=Level.WORKER)
async def add_dependency(ctx: Ctx, task_id: Int64, depends_on: Int64) -> Task:
    """Have a task wait for another. One that is held goes on; it cannot be completed before the other is."""

    def change(tx: Tx) -> Task:
        row = shapeable(tx, ctx.caller, task_id)
        visible_row(tx, ctx.caller, depends_on)
        add(tx, row, depends_on)
        return require_task(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.WORKER)
async def remove_dependency(ctx: Ctx, task_id: Int64, depends_on: Int64) -> Task:
    """Have a task wait for another no longer. What its own task waits for, a worker cannot take away."""

    def change(tx: Tx) -> Task:
        row = shapeable(tx, ctx.caller, task_id)
        if ctx.caller.level < Level.PLANNER and row["assigned_agent_id"] == ctx.caller.agent:
            raise Refused("FORBIDDEN", f"You hold task {task_id}: release it, or ask a planner to take this away.")
        _require_open(row)
        if not tx.run(SQL.remove, task_id=task_id, on=depends_on):
            raise Conflict("NO_DEPENDENCY", f"Task {task_id} does not wait for {depends_on}.")
        tx.run(SQL.recount, task_id=task_id)
        tx.emit("task.dependency_removed", f"task:{task_id}", session=row["session_id"], depends_on=depends_on)
        return require_task(tx, task_id)

    return await ctx.write(change)


def add(tx: Tx, row: Row, depends_on: int) -> None:
    """Add an edge in the caller's transaction; one that is there already stays.

    Raises:
        Conflict: ``DEPENDENCY_CYCLE`` with `details.path`, ``WRONG_STATE`` (the task has ended), ``DEPENDENCY_DEAD``
            (the other has died, and the task is to be cancelled when it does).
        NotFound: ``TASK_NOT_FOUND``.
    """
    task_id = row["id"]
    _require_open(row)
    state = TaskState(require_row(tx, depends_on)["status"])
    if (way := _way(tx, depends_on, task_id)) is not None:
        path = [task_id, *way]
        shown = path if len(path) <= SHOWN else [*path[: SHOWN // 2], "…", *path[-SHOWN // 2 :]]
        told = " → ".join(map(str, shown))
        raise Conflict("DEPENDENCY_CYCLE", f"The tasks would wait for each other: {told}.", path=path)
    if tx.run(SQL.add, task_id=task_id, on=depends_on):
        lifecycle.require_alive(row["on_failure"], {depends_on: state})
        tx.run(SQL.recount, task_id=task_id)
        tx.emit("task.dependency_added", f"task:{task_id}", session=row["session_id"], depends_on=depends_on)


def _require_open(row: Row) -> None:
    if row["status"] not in lifecycle.OPEN:
        said = f"Task {row['id']} is {row['status']}; it waits for nothing."
        raise Conflict("WRONG_STATE", said, status=row["status"])


def _way(tx: Reader, start: int, goal: int) -> list[int] | None:
    """From a task to another along what it waits for, both included, by a shortest way; None if there is none."""
    came_from: dict[int, int] = {}
    if start != goal:
        for task, waits_for in tx.tuples(SQL.edges_ahead, start=start):
            came_from.setdefault(waits_for, task)
        if goal not in came_from:
            return None
    path = [goal]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def completed(tx: Tx, row: Row) -> None:
    """A task is completed: what waited for it waits for one thing less."""
    if row["awaited"]:
        tx.run(SQL.one_less, task_id=row["id"])


def ended_badly(tx: Tx, task_id: int) -> None:
    """A task has failed or was cancelled: those that depend on it stay blocked, are cancelled, or go on."""
    cancel(tx, _consequences(tx, task_id))


def revived(tx: Tx, task_id: int) -> None:
    """A dead task is to be tried again: whoever went on without it waits for it again.

    One that is held goes on, and cannot be completed before it is, as with a dependency that is added.
    """
    for row in tx.all(SQL.dependents, task_id=task_id):
        tx.run(SQL.recount, task_id=row["id"])
    tx.run(SQL.recount, task_id=task_id)


def cancel(tx: Tx, doomed: list[tuple[int, str]]) -> None:
    """Cancel tasks, for a reason each, with all that is open under them and what that means for others."""
    waiting = deque(doomed)
    while waiting:
        root, reason = waiting.popleft()
        for row in tx.all(SQL.subtree_open, task_id=root):
            tx.run(SQL.cancel, task_id=row["id"], reason=reason or None, now=tx.now)
            end_attempt(tx, row["id"], "cancelled", reason or None)
            tx.emit("task.cancelled", f"task:{row['id']}", session=row["session_id"], reason=reason)
            waiting.extend(_consequences(tx, row["id"]))


def _consequences(tx: Tx, task_id: int) -> list[tuple[int, str]]:
    """Free those that ignore the end of a task, say that others are blocked, and name those to be cancelled."""
    doomed = []
    for row in tx.all(SQL.dependents, task_id=task_id):
        if row["on_failure"] == OnFailure.IGNORE:
            tx.run(SQL.recount, task_id=row["id"])
        elif row["status"] not in lifecycle.OPEN:
            continue
        elif row["on_failure"] == OnFailure.CANCEL:
            doomed.append((row["id"], f"task {task_id}, which it depends on, did not succeed"))
        else:
            tx.emit("task.blocked", f"task:{row['id']}", session=row["session_id"], by=task_id)
    return doomed


def shapeable(tx: Reader, caller: Caller, task_id: int) -> Row:
    """The row of a task whose dependencies the caller may change: a planner's any, a worker's under one it holds.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Refused: ``FORBIDDEN``.
    """
    row = visible_row(tx, caller, task_id)
    if caller.level >= Level.PLANNER or tx.one(SQL.held_above, task_id=task_id, agent=caller.agent):
        return row
    raise Refused("FORBIDDEN", f"Task {task_id} is not one you hold, nor under one.")


def require_none_open(tx: Reader, row: Row) -> None:
    """Refuse to complete a task that waits for others: subtasks it made itself, for example.

    Raises:
        Conflict: ``DEPENDENCIES_OPEN``.
    """
    if row["unmet"]:
        waits = blockers(tx, row)
        raise Conflict(
            "DEPENDENCIES_OPEN",
            f"Task {row['id']} waits for {', '.join(map(str, waits))}. Release it; it can be claimed again after them.",
            blocked_by=waits,
        )
