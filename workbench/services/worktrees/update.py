"""Updating a worktree: its target is merged into it, inside its box."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Mapping
from typing import Any

from workbench.errors import Conflict, WorkbenchError
from workbench.git import Checkout, Repository
from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, op
from workbench.rules.integration import WorktreeAction
from workbench.services import approvals
from workbench.services.tasks import attempts
from workbench.services.worktrees.imports import commit_of, import_branch
from workbench.services.worktrees.kept_work import require_put_away
from workbench.services.worktrees.places import COMMITTER, checkout_of, exclusive, fill_submodules, place_of
from workbench.services.worktrees.rows import KIND, WorktreeName, require_here, require_own_worktree
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

SHOWN_FILES = 20
"""How many conflicting files a sentence names."""

log = logging.getLogger(__name__)


class Updated(Wire):
    """The result of merging the target; with conflicts, nothing was changed."""

    worktree: str
    commit: str
    merged: bool
    conflicts: list[str]


@op(allow=Level.PLANNER, command=Command("worktrees update NAME"))
async def update_worktree(ctx: Ctx, worktree_name: WorktreeName) -> Updated:
    """Merge the target branch into a worktree. On conflicts, list the files and change nothing."""
    return await ctx.local.repositories.shielded(_update(ctx, worktree_name))


async def _update(ctx: Ctx, name: str) -> Updated:
    async with exclusive(ctx) as repository:
        row = await require_idle(ctx, repository, name)
        target = await to_thread(commit_of, repository, row["integration_target"])
        updated = await merge_into(ctx, repository, row, target, message(row))
        if updated.merged:
            await ctx.write(lambda tx: record_merge(tx, row, updated.commit))
        return updated


async def merge_into(ctx: Ctx, repository: Repository, row: Row, commit: str, message: str) -> Updated:
    """Merge a commit of the user's repository into a worktree, inside its box. Call with exclusive access.

    Raises:
        Conflict: ``WORKTREE_BUSY``, ``WORKTREE_ELSEWHERE``, ``WORKTREE_DIRTY``.
    """
    name = row["name"]
    await require_put_away(ctx, repository, name)
    await ctx.read(lambda tx: _check_idle(tx, name))
    return await _merge(ctx, repository, row, commit, message)


async def bring_up_to_date(ctx: Ctx, repository: Repository, row: Row, commit: str) -> tuple[str, str | None]:
    """Merge the target into a worktree in which an attempt is about to begin, if it has moved and does not conflict.

    Call with exclusive access, while nothing is at work there.

    Args:
        commit: that of its branch, with all that is in the worktree.

    Returns: the commit of its branch; if it is behind its target, a sentence that says by how much and why, else None.
    """
    name, target = row["name"], await to_thread(repository.resolve, row["integration_target"])
    behind = 0 if target is None else (await to_thread(repository.ahead_behind, commit, target))[1]
    if target is None or not behind:
        return commit, None
    commits = f"{behind} commit{'' if behind == 1 else 's'}"
    text = f"The worktree {name} is {commits} behind its target {row['integration_target']}"
    if not ctx.settings.update_worktrees:
        return commit, f"{text}: the setting update_worktrees is off."
    if await ctx.read(lambda tx: approvals.open_question(tx, KIND, f"worktree:{name}")):
        return commit, f"{text}: its integration is requested for the commit that it has."
    try:
        updated = await _merge(ctx, repository, row, target, message(row))
    except WorkbenchError as error:
        return commit, f"{text}, which could not be merged into it: {error.message}"
    if updated.conflicts:
        return commit, f"{text}, with which it conflicts in {', '.join(updated.conflicts[:SHOWN_FILES])}."
    await ctx.write(lambda tx: record_merge(tx, row, updated.commit))
    return updated.commit, None


async def _merge(ctx: Ctx, repository: Repository, row: Row, commit: str, message: str) -> Updated:
    name = row["name"]
    checkout, before = await open_on_branch(ctx, repository, row)
    if target := await to_thread(repository.resolve, row["integration_target"]):
        await to_thread(learn_target, checkout, row, target)
    conflicts = await to_thread(checkout.merge, commit, message, COMMITTER)
    after = before if conflicts else await import_branch(ctx, repository, row)
    if after != before:
        await to_thread(fill_submodules, ctx.settings, repository, place_of(ctx, row), after, before)
    return Updated(worktree=name, commit=after, merged=after != before, conflicts=conflicts)


async def require_idle(ctx: Ctx, repository: Repository, name: str) -> Row:
    """An active worktree that the caller may manage, and in which no task is in progress.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Refused: ``FORBIDDEN``.
        Conflict: ``WORKTREE_CLOSED``, ``WORKTREE_BUSY``, ``WORK_NOT_PUT_AWAY``.
    """
    row = require_here(
        ctx, await ctx.read(lambda tx: require_own_worktree(tx, ctx.caller, name, WorktreeAction.APPROVE))
    )
    await require_put_away(ctx, repository, name)
    await ctx.read(lambda tx: _check_idle(tx, name))
    return row


def _check_idle(tx: Reader, name: str) -> None:
    """Refuse while tasks are worked on in a worktree, or the work of an attempt there is not put away yet."""
    running = {task["task_id"] for task in tx.all(SQL.running, name=name)}
    if busy := sorted(running | {work["task_id"] for work in attempts.open_in(tx, name)}):
        text = f"Agents are working in {name} (task {', '.join(map(str, busy))}). Wait until they have ended."
        raise Conflict("WORKTREE_BUSY", text, tasks=busy)


async def open_on_branch(ctx: Ctx, repository: Repository, row: Row) -> tuple[Checkout, str]:
    """The checkout of a worktree that is on its branch, and the commit of the branch, imported.

    Raises:
        NotFound: ``BRANCH_NOT_FOUND``. Conflict: ``WORKTREE_ELSEWHERE``, ``IMPORT_REFUSED``.
        Unavailable: ``WORKTREE_GONE``.
    """
    commit = await import_branch(ctx, repository, row)
    checkout = await to_thread(checkout_of, ctx.settings, repository, place_of(ctx, row))
    branch, _ = await to_thread(checkout.head)
    if branch != row["branch_name"]:
        text = f"The worktree {row['name']} is not on its branch {row['branch_name']}. Switch it back first."
        raise Conflict("WORKTREE_ELSEWHERE", text, branch=branch)
    return checkout, commit


def learn_target(checkout: Checkout, row: Mapping[str, Any], commit: str) -> None:
    """Set the target branch in a worktree's own repository to the user's commit, for commands that name it.

    A branch of the worktree's own that is in the way stays.
    """
    try:
        checkout.learn_branches({row["integration_target"]: commit})
    except WorkbenchError as error:
        log.warning("%s of worktree %s is not up to date: %s", row["integration_target"], row["name"], error.message)


def message(row: Row) -> str:
    """The message of the commit that merges the target into a worktree."""
    return f"Merge {row['integration_target']} into {row['branch_name']}"


def record_merge(tx: Tx, row: Row, commit: str) -> None:
    """Record that the target was merged into a worktree."""
    data = {"commit": commit, "target": row["integration_target"]}
    tx.emit("worktree.updated", f"worktree:{row['name']}", **data)
