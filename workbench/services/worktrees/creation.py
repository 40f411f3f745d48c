"""Creating a worktree: a directory, a repository and a branch of its own."""

from __future__ import annotations

import json
import os
from asyncio import to_thread
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, WorkbenchError
from workbench.git import Repository
from workbench.model import Level
from workbench.ops import Ctx, op
from workbench.rules import access, integration
from workbench.rules.integration import Action
from workbench.services.processes.sandbox import confinement_of
from workbench.services.worktrees.journal import begin, end, settle_steps
from workbench.services.worktrees.places import Place, add_files, exclusive
from workbench.services.worktrees.rows import (
    SQL,
    Branch,
    Worktree,
    WorktreeName,
    find_worktree,
    require_worktree,
    worktree_of,
)
from workbench.store.base import Reader, Tx


@op(allow=Level.PLANNER)
async def create_worktree(
    ctx: Ctx,
    name: WorktreeName,
    branch_name: Annotated[Branch | None, Field(description="Default: wb/<name>/main.")] = None,
    source_branch: Annotated[
        Branch | None,
        Field(description="The branch to fork from, and the default integration target. Default: the current branch."),
    ] = None,
) -> Worktree:
    """Create a git worktree with a new branch for one line of work."""
    access.check_worktree_name(name)
    return await ctx.repositories.shielded(_create(ctx, name, branch_name or f"wb/{name}/main", source_branch))


async def _create(ctx: Ctx, name: str, branch: str, source: str | None) -> Worktree:
    async with exclusive(ctx) as repository:
        await ctx.read(lambda tx: _require_free(tx, name))
        repository.check_branch_name(branch)
        target = source or await to_thread(repository.current_branch) or "main"
        commit = await to_thread(repository.commit, target)
        await to_thread(_require_no_branch, repository, branch)
        place = Place.of(ctx.settings, name)
        await to_thread(_require_no_directory, place)
        await ctx.write(lambda tx: begin(tx, "create", place, branch, commit))
        try:
            await to_thread(add_files, ctx.settings, repository, place, branch, commit)
            protected = await to_thread(repository.protected)
            values = {"branch": branch, "commit": commit, "target": target, "protected": json.dumps(protected)}
            return await ctx.write(lambda tx: _add(tx, ctx, place, values))
        except WorkbenchError:
            await settle_steps(ctx, repository)
            raise


def _require_free(tx: Reader, name: str) -> None:
    if row := find_worktree(tx, name):
        integration.step(name, row["status"], Action.CREATE)


def _require_no_branch(repository: Repository, branch: str) -> None:
    if repository.resolve(branch) is not None:
        text = f"The branch {branch!r} already exists. Choose another name."
        raise Conflict("BRANCH_EXISTS", text, branch=branch)


def _require_no_directory(place: Place) -> None:
    for path in (place.path, place.git_dir):
        if os.path.lexists(path):
            raise Conflict("WORKTREE_PATH_TAKEN", f"{path} already exists. Choose another name.")


def _add(tx: Tx, ctx: Ctx, place: Place, values: Mapping[str, str]) -> Worktree:
    _require_free(tx, place.name)
    where = {"name": place.name, "path": str(place.path), "git_dir": str(place.git_dir)}
    how = {"confined": int(confinement_of(ctx.settings).enforced), "creator": ctx.caller.agent}
    tx.run(SQL.add, {**values, **where, **how, "by": tx.actor, "now": tx.now})
    end(tx, place.name)
    data = {key: values[key] for key in ("branch", "commit", "target")}
    tx.emit("worktree.created", f"worktree:{place.name}", **data)
    return worktree_of(require_worktree(tx, place.name))
