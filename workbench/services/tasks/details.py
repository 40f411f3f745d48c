"""Reading one task: in full, its status, its log, and waiting for it to change or end."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal

from pydantic import Field

from workbench.model import LARGEST_INT, Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.tasks import lifecycle
from workbench.services.tasks.rows import SQL, readable_row, status_of, task_of
from workbench.services.tasks.task import Task, TaskStatus
from workbench.store.base import Reader, Row


class LogLine(Wire):
    """A line that an agent logged about a task."""

    id: int
    task_id: int
    agent_id: str
    level: str
    message: str
    logged_at: Micros


class TaskLog(Wire):
    """Log lines in the requested order."""

    lines: list[LogLine]


@op(allow=Level.READ, reads=True)
async def get_task(ctx: Ctx, task_id: TaskId) -> Task:
    """Get a task in full: text, state, dependencies, attempts, result, artifacts."""
    return await ctx.read(lambda tx: task_of(tx, readable_row(tx, ctx.caller, task_id)))


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
    checks = itertools.count()

    def is_over(state: TaskStatus) -> bool:
        return state.status not in lifecycle.OPEN or (next(checks) > 0 and until == "changed")

    return await ctx.feed.until(
        lambda tx: status_of(tx, readable_row(tx, ctx.caller, task_id)),
        is_over,
        "task.*",
        subject=f"task:{task_id}",
        seconds=min(wait_seconds, ctx.settings.wait_limit_seconds),
    )


@op(allow=Level.READ, reads=True)
async def get_task_logs(
    ctx: Ctx,
    task_id: TaskId,
    cursor: Annotated[
        int, Field(ge=0, le=LARGEST_INT, description="Continue after the line with this id, in the same order.")
    ] = 0,
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
