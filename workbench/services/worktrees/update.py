"""Updating a worktree: its target is merged into it, inside its box."""

from __future__ import annotations

from asyncio import to_thread

from workbench.errors import Conflict
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules.integration import Action
from workbench.services.worktrees.imports import commit_of, import_branch
from workbench.services.worktrees.places import COMMITTER, checkout_of, exclusive, place_of
from workbench.services.worktrees.rows import WorktreeName, require_own_worktree
from workbench.store.queries import beside

SQL = beside(__file__)


class Updated(Wire):
    """The result of merging the target; with conflicts, nothing was changed."""

    worktree: str
    commit: str
    merged: bool
    conflicts: list[str]


@op(allow=Level.PLANNER)
async def update_worktree(ctx: Ctx, worktree_name: WorktreeName) -> Updated:
    """Merge the target branch into a worktree. On conflicts, list the files and change nothing."""
    return await ctx.repositories.shielded(_update(ctx, worktree_name))


async def _update(ctx: Ctx, name: str) -> Updated:
    async with exclusive(ctx) as repository:
        row = await ctx.read(lambda tx: require_own_worktree(tx, ctx.caller, name, Action.APPROVE))
        if running := await ctx.read(lambda tx: tx.all(SQL.running, name=name)):
            tasks = [task["task_id"] for task in running]
            listed = ", ".join(map(str, tasks))
            raise Conflict(
                "WORKTREE_BUSY",
                f"Agents are working in {name} (task {listed}). Wait until they have ended.",
                tasks=tasks,
            )
        before = await import_branch(ctx, repository, row)
        target = await to_thread(commit_of, repository, row["integration_target"])
        checkout = await to_thread(checkout_of, ctx.settings, repository, place_of(ctx, row))
        branch, _ = await to_thread(checkout.head)
        if branch != row["branch_name"]:
            text = f"The worktree {name} is not on its branch {row['branch_name']}. Switch it back first."
            raise Conflict("WORKTREE_ELSEWHERE", text, branch=branch)
        message = f"Merge {row['integration_target']} into {row['branch_name']}"
        conflicts = await to_thread(checkout.merge, target, message, COMMITTER)
        commit = before if conflicts else await import_branch(ctx, repository, row)
        updated = Updated(worktree=name, commit=commit, merged=commit != before, conflicts=conflicts)
        if updated.merged:
            data = {"commit": commit, "target": row["integration_target"]}
            await ctx.write(lambda tx: tx.emit("worktree.updated", f"worktree:{name}", **data))
        return updated
