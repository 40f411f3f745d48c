"""Updating a worktree: its target is merged into it, inside its box."""

from __future__ import annotations

from asyncio import to_thread

from workbench.errors import Conflict
from workbench.git import Repository
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules.integration import Action
from workbench.services.tasks import attempts
from workbench.services.worktrees.imports import commit_of, import_branch
from workbench.services.worktrees.places import COMMITTER, checkout_of, exclusive, place_of
from workbench.services.worktrees.rows import WorktreeName, require_own_worktree
from workbench.store.base import Row
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
        target = row["integration_target"]
        commit = await to_thread(commit_of, repository, target)
        updated = await merge_into(ctx, repository, row, commit, f"Merge {target} into {row['branch_name']}")
        if updated.merged:
            data = {"commit": updated.commit, "target": target}
            await ctx.write(lambda tx: tx.emit("worktree.updated", f"worktree:{name}", **data))
        return updated


async def merge_into(ctx: Ctx, repository: Repository, row: Row, commit: str, message: str) -> Updated:
    """Merge a commit of the user's repository into a worktree, inside its box. Call with exclusive access.

    Raises:
        Conflict: ``WORKTREE_BUSY``, ``WORKTREE_ELSEWHERE``, ``WORKTREE_DIRTY``.
    """
    name = row["name"]
    await _require_idle(ctx, name)
    before = await import_branch(ctx, repository, row)
    checkout = await to_thread(checkout_of, ctx.settings, repository, place_of(ctx, row))
    branch, _ = await to_thread(checkout.head)
    if branch != row["branch_name"]:
        text = f"The worktree {name} is not on its branch {row['branch_name']}. Switch it back first."
        raise Conflict("WORKTREE_ELSEWHERE", text, branch=branch)
    conflicts = await to_thread(checkout.merge, commit, message, COMMITTER)
    after = before if conflicts else await import_branch(ctx, repository, row)
    return Updated(worktree=name, commit=after, merged=after != before, conflicts=conflicts)


async def _require_idle(ctx: Ctx, name: str) -> None:
    """Refuse while tasks are worked on in a worktree, or the work of an attempt there is not put away yet."""
    running = await ctx.read(lambda tx: {task["task_id"] for task in tx.all(SQL.running, name=name)})
    running |= {work["task_id"] for work in await ctx.read(lambda tx: attempts.open_in(tx, name))}
    if running:
        raise Conflict(
            "WORKTREE_BUSY",
            f"Agents are working in {name} (task {', '.join(map(str, sorted(running)))}). Wait until they have ended.",
            tasks=sorted(running),
        )
