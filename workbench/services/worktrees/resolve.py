"""Resolving the conflicts of a worktree with its target: the merge is started there, and finished once it is resolved.

A person or an agent resolves them in the files of the worktree, whose commands run in its box.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import Conflict, Hint
from workbench.git import Checkout, Repository, Resolution
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.services.worktrees.imports import commit_of, import_branch
from workbench.services.worktrees.places import (
    COMMITTER,
    checkout_of,
    exclusive,
    fill_submodules,
    is_there,
    place_of,
    worktree_gone,
)
from workbench.services.worktrees.rows import WorktreeName
from workbench.services.worktrees.update import learn_target, message, open_on_branch, record_merge, require_idle
from workbench.store.base import Row

SHOWN_FILES = 3

Step = Literal["start", "finish", "abort"]


class Resolving(Wire):
    """The merge of the target into a worktree: `steps` say what to do next, `conflicts` which files are unresolved."""

    worktree: str
    target: str
    state: Literal["up_to_date", "merged", "unresolved", "aborted"]
    conflicts: list[str]
    commit: str
    path: str
    steps: list[str]


@op(allow=Level.PLANNER, destructive=True, tool=False, command="worktrees resolve")
async def resolve_worktree(
    ctx: Ctx,
    worktree_name: WorktreeName,
    step: Annotated[
        Step,
        Field(
            description="start: merge the target, leaving conflicts in the files; or list those that are left. "
            "finish: commit the resolved merge. abort: return to the state before it."
        ),
    ] = "start",
) -> Resolving:
    """Resolve the conflicts of a worktree with its target: start the merge, finish it, or abort it."""
    return await ctx.local.repositories.shielded(_resolve(ctx, worktree_name, step))


async def _resolve(ctx: Ctx, name: str, step: Step) -> Resolving:
    async with exclusive(ctx) as repository:
        row = await require_idle(ctx, repository, name)
        place = place_of(ctx, row)
        if not await to_thread(is_there, place):
            raise worktree_gone(place)
        row = {**row, "path": str(place.path)}
        checkout = await to_thread(checkout_of, ctx.settings, repository, place)
        is_open = await to_thread(Resolution(checkout).is_open)
        if step == "start":
            return await (_left_to_do(row, checkout) if is_open else _start(ctx, repository, row))
        if not is_open:
            raise Conflict(
                "NO_MERGE_IN_PROGRESS",
                f"No merge is in progress in {name}.",
                Hint("resolve_worktree", "Start one with step=start.", "Start one with {}."),
            )
        return await (_abort(row, checkout) if step == "abort" else _finish(ctx, repository, row, checkout))


async def _start(ctx: Ctx, repository: Repository, row: Row) -> Resolving:
    """Merge the target. Without conflicts, this is an update; with conflicts, they are left in the files."""
    checkout, before = await open_on_branch(ctx, repository, row)
    if files := await to_thread(checkout.uncommitted):
        text = f"The worktree {row['name']} has uncommitted changes. Commit or remove them first."
        raise Conflict("WORKTREE_DIRTY", text, files=files)
    target = await to_thread(commit_of, repository, row["integration_target"])
    await to_thread(learn_target, checkout, row, target)
    if not await to_thread(checkout.merge, target, message(row), COMMITTER):
        commit = await import_branch(ctx, repository, row)
        if commit == before:
            return _resolving(row, "up_to_date", commit, [], [])
        return await _finish_merge(ctx, repository, row, commit, before)
    await to_thread(Resolution(checkout).start, target, message(row), COMMITTER)
    return await _left_to_do(row, checkout)


async def _left_to_do(row: Row, checkout: Checkout) -> Resolving:
    """An unfinished merge, and the steps that are left."""
    files = await to_thread(Resolution(checkout).unresolved)
    commit = (await to_thread(checkout.head))[1] or row["imported_commit"]
    return _resolving(row, "unresolved", commit, files, _steps(row, files))


async def _finish(ctx: Ctx, repository: Repository, row: Row, checkout: Checkout) -> Resolving:
    if files := await to_thread(Resolution(checkout).unresolved):
        text = f"{_some(files)} in {row['name']} still {'has' if len(files) == 1 else 'have'} conflicts. {_how(row)}"
        raise Conflict("CONFLICTS_LEFT", text, files=files)
    _, before = await to_thread(checkout.head)
    await to_thread(checkout.commit_all, message(row), COMMITTER)
    return await _finish_merge(ctx, repository, row, await import_branch(ctx, repository, row), before)


async def _finish_merge(ctx: Ctx, repository: Repository, row: Row, commit: str, before: str | None) -> Resolving:
    await to_thread(fill_submodules, ctx.settings, repository, place_of(ctx, row), commit, before)
    await ctx.write(lambda tx: record_merge(tx, row, commit))
    next_ = f"Request the integration of {row['name']} again: `workbench integrate {row['name']}`"
    return _resolving(row, "merged", commit, [], [next_])


async def _abort(row: Row, checkout: Checkout) -> Resolving:
    await to_thread(Resolution(checkout).abort)
    return _resolving(row, "aborted", (await to_thread(checkout.head))[1] or row["imported_commit"], [], [])


def _resolving(
    row: Row,
    state: Literal["up_to_date", "merged", "unresolved", "aborted"],
    commit: str,
    files: Sequence[str],
    steps: Sequence[str],
) -> Resolving:
    return Resolving(
        worktree=row["name"],
        target=row["integration_target"],
        state=state,
        conflicts=list(files),
        commit=commit,
        path=row["path"],
        steps=list(steps),
    )


def _steps(row: Row, files: Sequence[str]) -> list[str]:
    name = row["name"]
    commit = f"Commit the merge: `workbench worktrees resolve {name} --finish`"
    back = f"Or return to the state before it: `workbench worktrees resolve {name} --abort`"
    if not files:
        return [commit, back]
    keep = "keep the right lines, and delete those with <<<<<<<, ======= and >>>>>>>."
    return [
        f"Edit {_some(files)} in {row['path']}: {keep}",
        _how(row),
        f"Look at the result: `workbench worktrees run {name} -- git diff`",
        commit,
        back,
    ]


def _how(row: Row) -> str:
    run = f"workbench worktrees run {row['name']} --"
    return (
        f"A file that is binary, or that one side deleted, is settled by `{run} git add FILE` or `{run} git rm FILE`."
    )


def merge_conflict(name: str, target: str, files: Sequence[str]) -> Conflict:
    """The error for a worktree that conflicts with its target."""
    text = (
        f"The worktree {name} and {target} both changed {_some(files)}. `workbench worktrees resolve {name}` merges "
        f"{target} into {name} and shows the steps; then request the integration again."
    )
    return Conflict("MERGE_CONFLICT", text, worktree=name, files=list(files))


def _some(files: Sequence[str]) -> str:
    more = f" and {len(files) - SHOWN_FILES} more" if len(files) > SHOWN_FILES else ""
    return ", ".join(files[:SHOWN_FILES]) + more
