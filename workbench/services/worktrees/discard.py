"""Discarding a worktree: its agents are terminated, its files removed, and work that exists nowhere else is saved."""

from __future__ import annotations

import logging
from asyncio import to_thread
from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, Hint, WorkbenchError
from workbench.git import Repository
from workbench.model import Level
from workbench.ops import SAID, Command, Ctx, op
from workbench.rules.integration import WorktreeAction
from workbench.services import approvals
from workbench.services.processes import termination
from workbench.services.worktrees.imports import import_branch
from workbench.services.worktrees.journal import begin, finish_removal
from workbench.services.worktrees.kept_work import put_away_worktree
from workbench.services.worktrees.places import checkout_of, exclusive, is_there, place_of
from workbench.services.worktrees.rescue import (
    commits_alone,
    move_to_trash,
    only_in_submodules,
    only_there,
    save_what_is_nowhere_else,
    stamp,
)
from workbench.services.worktrees.rows import (
    KIND,
    Closing,
    WorktreeInfo,
    WorktreeName,
    close_worktree,
    require_own_worktree,
    require_worktree,
    worktree_of,
)
from workbench.store.base import Row, Tx

log = logging.getLogger(__name__)


class Discarded(WorktreeInfo):
    """A discarded worktree. `bundle` is the file of saved work, for `git fetch <bundle> '*:*'`; null if none."""

    branch_kept: bool
    bundle: str | None


@op(allow=Level.PLANNER, destructive=True, command=Command("discard NAME", also="worktrees discard"))
async def discard_worktree(
    ctx: Ctx,
    worktree_name: WorktreeName,
    reason: Annotated[str, SAID, Field(max_length=1_000, description="Recorded with the worktree.")] = "",
    delete_branch: Annotated[bool, Field(description="Delete its branch too.")] = False,
    force: Annotated[
        bool, Field(description="Discard even commits and files that exist nowhere else; they are saved as a bundle.")
    ] = False,
) -> Discarded:
    """Discard a worktree: terminate its agents and remove its files. Its branch is kept by default."""
    return await ctx.local.repositories.shielded(_discard(ctx, worktree_name, reason, delete_branch, force))


async def _discard(ctx: Ctx, name: str, reason: str, delete_branch: bool, force: bool) -> Discarded:
    async with exclusive(ctx) as repository:
        row = await ctx.read(lambda tx: require_own_worktree(tx, ctx.caller, name, WorktreeAction.DISCARD))
        place = place_of(ctx, row)
        if not force:
            await _require_nothing_lost(ctx, repository, row, delete_branch)
        await termination.end_all(ctx, "the worktree was discarded", name)
        is_unusable = False
        try:
            await put_away_worktree(ctx, repository, name, briefly=force)
        except WorkbenchError as error:
            if not force:
                raise
            log.warning("worktree %s is discarded with what attempts left there: %s", name, error.message)
            is_unusable = error.code in ("GIT_TIMEOUT", "REPOSITORY_DAMAGED")  # it is not asked again
        if is_unusable:
            bundle: str | None = str(await to_thread(move_to_trash, ctx.settings.trash, place, stamp(ctx)))
        else:
            bundle = await save_what_is_nowhere_else(ctx, repository, row, with_branch=delete_branch)
        commit = await to_thread(repository.resolve, row["branch_name"]) if delete_branch else None

        def change(tx: Tx) -> WorktreeInfo:
            question = approvals.open_question(tx, KIND, f"worktree:{name}")
            approval_id = question.id if question else None
            closing = Closing(approval_id, reason=reason, branch_kept=not delete_branch, bundle=bundle)
            close_worktree(tx, row, WorktreeAction.DISCARD, None, closing)
            if question:
                approvals.decide(tx, question, "rejected", "the worktree was discarded")
            begin(tx, ctx.local.machine, "remove", place, row["branch_name"], commit)
            data = {"reason": reason, "branch_kept": not delete_branch, "bundle": bundle}
            tx.emit("worktree.discarded", f"worktree:{name}", **data)
            return worktree_of(ctx, require_worktree(tx, name))

        discarded = await ctx.write(change)
        await finish_removal(ctx, repository, name)
        return Discarded(**discarded.model_dump(), branch_kept=not delete_branch, bundle=bundle)


async def _require_nothing_lost(ctx: Ctx, repository: Repository, row: Row, with_branch: bool) -> None:
    name, place, alone, refs = row["name"], place_of(ctx, row), 0, list[str]()
    if await to_thread(is_there, place):
        await import_branch(ctx, repository, row)
        checkout = await to_thread(checkout_of, ctx.settings, repository, place)
        if files := await to_thread(checkout.uncommitted) or await to_thread(checkout.nested):
            raise Conflict(
                "WORKTREE_DIRTY",
                f"The worktree {name} has uncommitted files: {', '.join(files[:3])}.",
                Hint("", "Commit them, or discard with {}, which saves them as a bundle.", force=True),
                files=files,
            )
        refs = await to_thread(only_there, repository, checkout)
        for inner, _, within in await to_thread(only_in_submodules, repository, checkout):
            refs += [f"{inner.git_dir.name}: {ref}" for ref in within]
    if with_branch:
        alone = await to_thread(commits_alone, repository, row["branch_name"])
    if alone or refs:
        what = f"{alone} commits of {row['branch_name']}" if alone else f"Commits of {', '.join(refs[:3])} in {name}"
        raise Conflict(
            "COMMITS_ONLY_HERE",
            f"{what} would be on no branch of yours.",
            Hint("", "Keep the branch, or discard with {}, which saves them.", force=True),
            commits=alone,
            refs=refs,
        )
