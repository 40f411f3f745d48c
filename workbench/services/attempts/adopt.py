"""Adopting the kept work of an attempt: it is merged into a worktree, whose integration is then requested."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict
from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.integration import OPEN, WorktreeAction
from workbench.services.attempts.work import AttemptNumber, require_kept
from workbench.services.integration.request import request_integration
from workbench.services.tasks.rows import attempt_ref, visible_row
from workbench.services.worktrees.creation import create_worktree
from workbench.services.worktrees.places import exclusive
from workbench.services.worktrees.rows import WorktreeName, find_worktree, require_own_worktree
from workbench.services.worktrees.update import Updated, merge_into
from workbench.store.base import Reader, Row


class Adopted(Wire):
    """The worktree that has the work of an attempt now, its commit, and the approval that merges it."""

    worktree: str
    commit: str
    approval_id: int
    target_branch: str


@op(
    allow=Level.PLANNER,
    command=Command(
        "adopt TASK_ID ATTEMPT",
        "{worktree} has the work of attempt {attempt} at task {task_id}. "
        "To merge it into {target_branch}, run `workbench approve {approval_id}`.",
        names={"worktree": "worktree_name"},
    ),
)
async def adopt_attempt(
    ctx: Ctx,
    task_id: TaskId,
    attempt: AttemptNumber,
    worktree_name: Annotated[
        WorktreeName | None,
        Field(description="Default: that of the attempt. One that is not there, or no longer, is created."),
    ] = None,
) -> Adopted:
    """Merge what an attempt made into a worktree, and request its integration. The task stays as it is."""

    def question(tx: Reader) -> tuple[Row, Row | None]:
        visible_row(tx, ctx.caller, task_id)
        work = require_kept(tx, ctx, task_id, attempt)
        return work, find_worktree(tx, work["worktree"])

    work, home = await ctx.read(question)
    is_open = home is not None and home["status"] in OPEN
    name: str = worktree_name or (work["worktree"] if is_open else f"attempt-{task_id}-{attempt}")
    into = await ctx.read(lambda tx: find_worktree(tx, name))
    if into is None or into["status"] not in OPEN:
        await create_worktree(ctx, name, source_branch=home["integration_target"] if home else None)
    merged = await ctx.local.repositories.shielded(_merge(ctx, work, name))
    request = await request_integration(ctx, name)
    return Adopted(
        worktree=name, commit=merged.commit, approval_id=request.approval_id, target_branch=request.target_branch
    )


async def _merge(ctx: Ctx, work: Row, name: str) -> Updated:
    ref = attempt_ref(work["task_id"], work["attempt"])
    async with exclusive(ctx) as repository:
        row = await ctx.read(lambda tx: require_own_worktree(tx, ctx.caller, name, WorktreeAction.APPROVE))
        message = f"Adopt attempt {work['attempt']} at task {work['task_id']} by {work['agent']}"
        merged = await merge_into(ctx, repository, row, work["kept_commit"], message)
    if merged.conflicts:
        raise Conflict(
            "MERGE_CONFLICT",
            f"{ref} and {name} both changed {', '.join(merged.conflicts[:3])}. Nothing was changed; adopt it into "
            "another worktree (worktree_name).",
            files=merged.conflicts,
        )
    data = {"attempt": work["attempt"], "worktree": name, "commit": merged.commit}
    await ctx.write(lambda tx: tx.emit("task.attempt_adopted", f"task:{work['task_id']}", **data))
    return merged
