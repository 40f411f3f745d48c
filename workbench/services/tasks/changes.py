"""Changing one's mind about tasks: cancel, try again, give to somebody else, reprioritise, break down (spec 3)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict
from workbench.model import Int64, Level, OnFailure, TaskState
from workbench.ops import Ctx, op
from workbench.rules.tasks import lifecycle
from workbench.rules.tasks.lifecycle import Action
from workbench.services.tasks import attempts
from workbench.services.tasks import dependencies as graph
from workbench.services.tasks.creation import add_task, reservable
from workbench.services.tasks.rows import require_task, reserve, visible_row, waits_of
from workbench.services.tasks.task import (
    ContextRef,
    Dependencies,
    Description,
    NewTask,
    NoRetry,
    Policy,
    Priority,
    Retries,
    Run,
    Task,
    Title,
)
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)

Reason = Annotated[str, Field(max_length=1_000)]


@op(allow=Level.WORKER)
async def create_subtask(
    ctx: Ctx,
    parent_task_id: Annotated[Int64, Field(description="A task you hold; a planner may name any.")],
    title: Title,
    description: Description = "",
    persona_id: Annotated[str | None, Field(description="The parent's when null.")] = None,
    priority: Annotated[Priority | None, Field(description="The parent's when null.")] = None,
    dependencies: Dependencies = [],
    target_worktree: Annotated[str | None, Field(description="The parent's when null.")] = None,
    run: Run = None,
    max_retries: Retries = None,
    context_ref: ContextRef = None,
    metadata: dict[str, Any] = {},
    on_failure: Policy = OnFailure.BLOCK,
    no_retry: NoRetry = [],
    blocks_parent: Annotated[
        bool, Field(description="The parent waits for it: release the parent, and claim it again afterwards.")
    ] = False,
) -> Task:
    """Break a task you hold down: add a task under it, which others may claim."""

    def change(tx: Tx) -> Task:
        parent = graph.shapeable(tx, ctx.caller, parent_task_id)
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
        return require_task(tx, made)

    return await ctx.write(change)


@op(allow=Level.PLANNER, destructive=True)
async def cancel_task(ctx: Ctx, task_id: Int64, reason: Reason = "") -> Task:
    """Cancel a task and everything under it that is not finished; who holds one loses it."""

    def change(tx: Tx) -> Task:
        lifecycle.step(visible_row(tx, ctx.caller, task_id)["status"], Action.CANCEL)
        graph.cancel(tx, [(task_id, reason)])
        return require_task(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.PLANNER)
async def retry_task(
    ctx: Ctx,
    task_id: Int64,
    reason: Reason = "",
    max_retries: Annotated[Retries, Field(description="Retries from now on; as before when null.")] = None,
) -> Task:
    """Have a failed or cancelled task tried again, with all its retries anew.

    Refused if it is to be cancelled with something it depends on that is dead as well: retry first what
    `DEPENDENCY_DEAD` names.
    """

    def change(tx: Tx) -> Task:
        row = visible_row(tx, ctx.caller, task_id)
        lifecycle.step(row["status"], Action.RETRY)
        waits = waits_of(tx, task_id)
        lifecycle.require_alive(row["on_failure"], {one["depends_on"]: one["status"] for one in waits})
        tx.run(SQL.revive, task_id=task_id)
        if max_retries is not None:
            tx.run(SQL.set_retries, task_id=task_id, max_retries=max_retries)
        graph.revived(tx, task_id)
        tx.emit("task.revived", f"task:{task_id}", session=row["session_id"], reason=reason)
        return require_task(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.PLANNER)
async def reassign_task(
    ctx: Ctx,
    task_id: Int64,
    assigned_agent_id: Annotated[str | None, Field(description="Only this agent may claim it; anyone when null.")],
    reason: Reason = "",
) -> Task:
    """Reserve a task for an agent, or for nobody. Who holds it now loses it, and no retry is used up."""

    def change(tx: Tx) -> Task:
        row = visible_row(tx, ctx.caller, task_id)
        lifecycle.step(row["status"], Action.REASSIGN)
        agent = reservable(tx, assigned_agent_id, row["session_id"]) if assigned_agent_id else None
        if row["status"] != TaskState.PENDING:
            if agent is not None and agent == row["assigned_agent_id"]:
                raise Conflict("ALREADY_THEIRS", f"{assigned_agent_id} holds task {task_id} now.")
            attempts.put_back(tx, row, "reassigned", reason)
        reserve(tx, task_id, agent)
        told = {"assigned_agent_id": assigned_agent_id, "reason": reason}
        tx.emit("task.reassigned", f"task:{task_id}", session=row["session_id"], **told)
        return require_task(tx, task_id)

    return await ctx.write(change)


@op(allow=Level.PLANNER)
async def set_priority(ctx: Ctx, task_id: Int64, priority: Priority) -> Task:
    """Have a task claimed earlier or later than others."""

    def change(tx: Tx) -> Task:
        row = visible_row(tx, ctx.caller, task_id)
        if row["status"] not in lifecycle.OPEN:
            raise Conflict("WRONG_STATE", f"Task {task_id} is {row['status']}.", status=row["status"])
        tx.run(SQL.prioritise, task_id=task_id, priority=priority)
        tx.emit("task.prioritised", f"task:{task_id}", session=row["session_id"], priority=priority)
        return require_task(tx, task_id)

    return await ctx.write(change)
