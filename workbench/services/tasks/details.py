"""Reads tasks in full, and the status and the log of one; waits for a task to change or to end."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from workbench.model import LARGEST_INT, Int64, Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.tasks import lifecycle
from workbench.services.tasks.rows import SQL, readable_row, readable_rows, status_of, task_of
from workbench.services.tasks.task import TaskInfo, TaskStatus
from workbench.store.base import Reader, Row


class LogLine(Wire):
    """A line that an agent logged about a task."""

    id: int
    task_id: int
    agent_id: str
    level: str
    message: str
    logged_at: Micros


class TasksInFull(Wire):
    """Several tasks."""

    tasks: list[TaskInfo]


class TaskLog(Wire):
    """Log lines in the requested order."""

    lines: list[LogLine]


@op(allow=Level.READ, reads=True, command="task")
async def get_task(ctx: Ctx, task_id: TaskId) -> TaskInfo:
    """Get a task in full: text, state, dependencies, attempts, result, artifacts."""
    return await ctx.read(lambda tx: task_of(tx, readable_row(tx, ctx.caller, task_id)))


@op(allow=Level.READ, reads=True, tool=False)
async def get_tasks(
    ctx: Ctx, task_ids: Annotated[list[Int64], Field(max_length=100, description="Their ids; see list_tasks.")]
) -> TasksInFull:
    """Get several tasks in full, in the order of their ids here; those that do not exist are left out."""
    ids = dict.fromkeys(task_ids)
    return await ctx.read(
        lambda tx: TasksInFull(tasks=[task_of(tx, row) for row in readable_rows(tx, ctx.caller, ids)])
    )


@op(allow=Level.READ, reads=True, tool=False)
async def get_task_status(ctx: Ctx, task_id: TaskId) -> TaskStatus:
    """Get the state of a task, and the dependencies that it waits for."""
    return await ctx.read(lambda tx: status_of(tx, readable_row(tx, ctx.caller, task_id)))


@op(allow=Level.READ, reads=True)
async def wait_for_task(
    ctx: Ctx,
    task_id: TaskId,
    until: Annotated[Literal["ended", "changed"], Field(description="Wait for its end, or for any event.")] = "ended",
    wait_seconds: Annotated[float, Field(ge=0, description="Answer after this long at the latest.")] = 30,
) -> TaskStatus:
    """Wait until a task has ended, or until anything happens to it; return its status then."""
    seconds = min(wait_seconds, ctx.settings.wait_limit_seconds)
    about = f"task:{task_id}"

    def state(tx: Reader) -> TaskStatus:
        return status_of(tx, readable_row(tx, ctx.caller, task_id))

    def is_over(status: TaskStatus) -> bool:
        return status.status not in lifecycle.OPEN

    if until == "ended":
        return await ctx.feed.until(state, is_over, "task.*", subject=about, seconds=seconds)
    with ctx.feed.changed("task.*", subject=about) as change:  # from now on, however late the first read is
        status = await ctx.read(state)
        if not is_over(status) and await change.after(0, seconds):
            status = await ctx.read(state)
        return status


@op(allow=Level.READ, reads=True, command="task")
async def get_task_logs(
    ctx: Ctx,
    task_id: TaskId,
    cursor: Annotated[Int64, Field(ge=0, description="Continue after the line with this id, in the same order.")] = 0,
    limit: Annotated[int, Field(ge=1, le=500, description="At most this many lines.")] = 200,
    newest_first: Annotated[bool, Field(description="Start at the end of the log and read backward.")] = False,
) -> TaskLog:
    """Get the progress notes of a task, oldest first by default."""

    def query(tx: Reader) -> list[Row]:
        readable_row(tx, ctx.caller, task_id)
        if newest_first:
            return tx.all(SQL.logs_back, task_id=task_id, cursor=cursor or LARGEST_INT, limit=limit)
        return tx.all(SQL.logs, task_id=task_id, cursor=cursor, limit=limit)

    return TaskLog(lines=[LogLine(**row) for row in await ctx.read(query)])
