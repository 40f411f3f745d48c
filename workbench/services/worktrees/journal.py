"""The journal of file operations on worktrees: recorded before they begin, finished or undone after a crash."""

from __future__ import annotations

import logging
from asyncio import to_thread
from contextlib import suppress

from workbench.errors import Conflict, WorkbenchError
from workbench.git import Repository
from workbench.ops import Ctx
from workbench.ops.duties import repairs
from workbench.rules.integration import WorktreeState
from workbench.services.worktrees.places import WorktreeLocation, place_of, remove_link
from workbench.services.worktrees.rescue import SAVED, forget_saved, save_what_is_nowhere_else
from workbench.services.worktrees.rows import require_worktree
from workbench.state.machine import Machine
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside
from workbench.system.tree_removal import remove_tree

SQL = beside(__file__)

log = logging.getLogger(__name__)


def unfinished(tx: Reader, machine: Machine) -> list[Row]:
    """The steps of this machine that have begun and not ended, oldest first."""
    return tx.all(SQL.steps, machine=machine.only)


def begin(tx: Tx, machine: Machine, step: str, place: WorktreeLocation, branch: str, commit: str | None) -> None:
    """Record a step before it begins. With `commit`, the branch is deleted too if it is still at that commit.

    Raises:
        Conflict: ``WORKTREE_PATH_TAKEN``: another machine creates or removes a worktree of this name.
    """
    other = tx.one(SQL.get, name=place.name)
    if other is not None and not machine.has(other["machine"]):
        text = f"{other['machine']} is creating or removing a worktree {place.name}. Wait, or choose another name."
        raise Conflict("WORKTREE_PATH_TAKEN", text, machine=other["machine"])
    about = {"name": place.name, "step": step, "branch": branch, "commit": commit, "machine": machine.name}
    tx.run(SQL.begin, about, now=tx.now)


def end(tx: Tx, name: str) -> None:
    """Record that the step of a worktree has ended."""
    tx.run(SQL.end, name=name)


@repairs
async def settle_steps(ctx: Ctx, repository: Repository) -> None:
    """Finish or undo every unfinished step. Call with exclusive access."""
    for step in await ctx.read(lambda tx: unfinished(tx, ctx.local.machine)):
        await _settle(ctx, repository, step)
    if (repository.git_dir / SAVED).is_dir():
        await to_thread(forget_saved, repository)


async def _settle(ctx: Ctx, repository: Repository, step: Row) -> None:
    """Undo an interrupted creation; repeat an interrupted removal."""
    name = step["name"]
    place = place_of(ctx, step)
    if step["step"] == "rescue":
        row = {**await ctx.read(lambda tx: require_worktree(tx, name)), "status": WorktreeState.ACTIVE}
        bundle = await save_what_is_nowhere_else(ctx, repository, row, with_branch=False)
        await ctx.write(lambda tx: _record_rescue(tx, ctx.local.machine, place, step, bundle))
    await remove_files(ctx, repository, place)
    if step["branch_commit"]:
        with suppress(WorkbenchError):  # a branch that has moved is in use, and stays
            await to_thread(repository.delete_branch, step["branch_name"], step["branch_commit"])
    await ctx.write(lambda tx: end(tx, step["name"]))


def _record_rescue(tx: Tx, machine: Machine, place: WorktreeLocation, step: Row, bundle: str | None) -> None:
    begin(tx, machine, "remove", place, step["branch_name"], step["branch_commit"])
    if bundle:
        tx.emit("worktree.saved", f"worktree:{place.name}", bundle=bundle)


async def remove_files(ctx: Ctx, repository: Repository, place: WorktreeLocation) -> None:
    """Remove those of a worktree's directories that exist.

    Raises:
        Unavailable: ``WORKTREE_NOT_REMOVED``.
    """
    ctx.local.repositories.status_cache.forget(place.path)
    await to_thread(repository.remove_worktree, place.path, place.git_dir)
    await to_thread(remove_link, ctx.settings, place)
    await to_thread(remove_tree, place.scratch)
    await to_thread(remove_tree, ctx.settings.bundles / place.name)


async def finish_removal(ctx: Ctx, repository: Repository, name: str) -> None:
    """Remove the files of a closed worktree. If that fails, it is retried later."""
    for step in await ctx.read(lambda tx: unfinished(tx, ctx.local.machine)):
        if step["name"] == name:
            try:
                await _settle(ctx, repository, step)
            except WorkbenchError:
                log.warning("cannot remove the files of worktree %s; retrying later", name, exc_info=True)
