"""Creating a worktree: a directory, a repository and a branch of its own."""

from __future__ import annotations

import json
import os
from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict, Refused
from workbench.git import Repository
from workbench.model import Level
from workbench.ops import Command, Ctx, op
from workbench.rules import access, integration
from workbench.rules.integration import WorktreeAction
from workbench.rules.workplace import Workplace
from workbench.services.access import secret_marks
from workbench.services.processes.sandbox import confinement_of
from workbench.services.processes.workplaces import of_settings
from workbench.services.worktrees.journal import begin, end, settle_steps
from workbench.services.worktrees.places import (
    WorktreeLocation,
    add_files,
    empty_submodules,
    exclusive,
    find_included,
    included_secrets,
    lfs_pointers,
)
from workbench.services.worktrees.rows import (
    SQL,
    Branch,
    WorktreeInfo,
    find_worktree,
    open_worktrees,
    require_worktree,
    worktree_of,
)
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx


@dataclass(frozen=True, slots=True)
class WorktreeStart:
    """Where a worktree starts: its branch, the commit it is at, the commit it forked from `target`, the target."""

    branch: str
    commit: str
    base: str
    target: str
    existing: bool


class CreatedWorktree(WorktreeInfo):
    """A new worktree. `empty_submodules` are the submodules whose files it does not have, and why; `lfs_pointers` the
    files of Git LFS whose contents it does not have, but only the pointers."""

    empty_submodules: list[str]
    lfs_pointers: list[str]


NewName = Annotated[
    str, Field(min_length=1, max_length=50, description="Small letters, digits, - and _; a letter or digit first.")
]


@op(
    allow=Level.PLANNER,
    command=Command(
        "worktrees create NAME",
        names={"branch": "branch_name", "from": "source_branch"},
        help="Create a worktree with its own branch, or with --branch, one that continues an existing branch.",
    ),
)
async def create_worktree(
    ctx: Ctx,
    name: NewName,
    branch_name: Annotated[
        Branch | None, Field(description="Its branch, new or to be continued; by default a new wb/NAME/main.")
    ] = None,
    source_branch: Annotated[
        Branch | None,
        Field(
            description="Where to fork it, and its default target; by default the current branch, or for a continued "
            "branch, its earlier target."
        ),
    ] = None,
) -> CreatedWorktree:
    """Create a git worktree for one line of work, with a new branch or with one that a worktree had before."""
    access.check_worktree_name(name)
    workplace = of_settings(ctx.settings)
    return await ctx.local.repositories.shielded(_create(ctx, name, workplace, branch_name, source_branch))


async def create_with_workplace(ctx: Ctx, name: str, workplace: Workplace) -> str:
    """Create a worktree that gets what a workplace includes; its name.

    Raises:
        WorkbenchError: see `create_worktree`.
    """
    access.check_worktree_name(name)
    return (await ctx.local.repositories.shielded(_create(ctx, name, workplace))).name


async def _create(
    ctx: Ctx, name: str, workplace: Workplace, branch: str | None = None, source: str | None = None
) -> CreatedWorktree:
    async with exclusive(ctx) as repository:
        await ctx.read(lambda tx: _require_free(tx, name))
        files = await to_thread(find_included, ctx.settings, repository, workplace)
        await secret_marks.learn(ctx, await to_thread(included_secrets, ctx.settings, files))
        start = await _start(ctx, repository, name, branch, source)
        place = await to_thread(WorktreeLocation.of_new, ctx.settings, name)
        await to_thread(_require_no_directory, ctx.settings, place)
        new_branch = None if start.existing else start.commit
        await ctx.write(lambda tx: begin(tx, ctx.local.machine, "create", place, start.branch, new_branch))
        try:
            how: dict[str, Any] = {"existing": start.existing, "include": files, "submodules": workplace.submodules}
            await to_thread(add_files, ctx.settings, repository, place, start.branch, start.commit, **how)
            protected = await to_thread(repository.protected)
            empty = await to_thread(empty_submodules, ctx.settings, repository, place, start.commit)
            pointers = await to_thread(lfs_pointers, ctx.settings, repository, place)
            worktree = await ctx.write(lambda tx: _add(tx, ctx, place, start, json.dumps(protected)))
            return CreatedWorktree(**worktree.model_dump(), empty_submodules=empty, lfs_pointers=pointers)
        except Exception:
            await settle_steps(ctx, repository)
            raise


def _require_free(tx: Reader, name: str) -> None:
    if row := find_worktree(tx, name):
        integration.step(name, row["status"], WorktreeAction.CREATE)


async def _start(ctx: Ctx, repository: Repository, name: str, choice: str | None, source: str | None) -> WorktreeStart:
    branch = choice or f"wb/{name}/main"
    repository.check_branch_name(branch)
    tip = await to_thread(repository.resolve, branch)
    earlier = await ctx.read(lambda tx: tx.one(SQL.last_on_branch, branch=branch)) if tip else None
    former = earlier["integration_target"] if earlier else None
    target = source or former or await to_thread(repository.current_branch) or "main"
    commit = await to_thread(repository.commit, target)
    if tip is None:
        return WorktreeStart(branch, commit, commit, target, existing=False)
    if choice is None:
        raise await to_thread(_offer, repository, name, branch, target)
    _require_continuable(ctx, branch, target, earlier, await ctx.read(open_worktrees))
    base = await to_thread(repository.merge_base, commit, tip)
    return WorktreeStart(branch, tip, base or tip, target, existing=True)


def _offer(repository: Repository, name: str, branch: str, target: str) -> Conflict:
    """The error for a worktree whose usual branch exists: the branch can be continued."""
    ahead, _ = repository.ahead_behind(branch, target)
    commits = f", with {ahead} commit{'' if ahead == 1 else 's'} that {target} does not have" if ahead else ""
    return Conflict(
        "BRANCH_EXISTS",
        f"The branch {branch!r} already exists{commits}. To continue it, give it as branch_name "
        f"(`workbench worktrees create {name} --branch {branch}`); otherwise choose another name.",
        branch=branch,
        ahead=ahead,
    )


def _require_continuable(ctx: Ctx, branch: str, target: str, earlier: Row | None, others: Sequence[Row]) -> None:
    """Refuse an existing branch on which a worktree must not commit.

    Raises:
        Conflict: ``BRANCH_EXISTS``: it is a target, or belongs to an open worktree.
        Refused: ``FORBIDDEN``: a planner may continue only the branches of worktrees.
    """
    if user := next((row["name"] for row in others if row["branch_name"] == branch), None):
        text = f"The branch {branch!r} already exists and belongs to the worktree {user}. Choose another name."
        raise Conflict("BRANCH_EXISTS", text, branch=branch)
    if branch in {target, *(row["integration_target"] for row in others)}:
        text = f"The branch {branch!r} already exists and is a target of integrations. Choose another name."
        raise Conflict("BRANCH_EXISTS", text, branch=branch)
    if earlier is None and ctx.caller.level is not Level.OPERATOR:
        raise Refused("FORBIDDEN", f"The branch {branch!r} was never that of a worktree; only the operator may use it.")


def _require_no_directory(settings: Settings, place: WorktreeLocation) -> None:
    for path in (settings.worktrees / place.name, place.path, place.git_dir):
        if os.path.lexists(path):
            raise Conflict("WORKTREE_PATH_TAKEN", f"{path} already exists. Choose another name.")


def _add(tx: Tx, ctx: Ctx, place: WorktreeLocation, start: WorktreeStart, protected: str) -> WorktreeInfo:
    _require_free(tx, place.name)
    how = {
        "name": place.name,
        "confined": int(confinement_of(ctx.settings).enforced),
        "creator": ctx.caller.agent,
        "protected": protected,
        "machine": ctx.local.machine.name,
    }
    what = {"branch": start.branch, "base": start.base, "commit": start.commit, "target": start.target}
    tx.run(SQL.add, {**how, **what, "by": tx.actor, "now": tx.now})
    end(tx, place.name)
    data = {"branch": start.branch, "commit": start.commit, "target": start.target}
    tx.emit("worktree.created", f"worktree:{place.name}", **data)
    return worktree_of(ctx, require_worktree(tx, place.name))
