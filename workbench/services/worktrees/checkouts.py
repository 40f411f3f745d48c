"""Checkouts to read, for attempts without a worktree: one of each commit of the target, which no command may change.

They are made when they are first needed, and shared. Those that were not used for longest are removed.
"""

from __future__ import annotations

import os
from asyncio import to_thread
from contextlib import suppress
from pathlib import Path

from workbench.errors import BadInput
from workbench.git import Repository
from workbench.model import SECOND, Wire
from workbench.ops import Ctx
from workbench.services.processes.sandbox import confinement_of
from workbench.services.worktrees.places import WorktreeLocation, add_files, exclusive
from workbench.state.settings import Settings
from workbench.store.queries import beside
from workbench.system.tree_removal import remove_tree

SQL = beside(__file__)
_READY = "ready"
"""The name of a file beside a complete checkout; its time is that of the last use."""


class ReadCheckout(Wire):
    """A checkout of `commit` that commands may read: its files, and its repository."""

    path: str
    git_dir: str
    commit: str


async def of_target(ctx: Ctx) -> ReadCheckout | None:
    """A checkout of the branch that worktrees are merged into by default; None if the project has no repository.

    Raises:
        Unavailable: ``GIT_BUSY``, ``GIT_FAILED``, ``WORKTREE_PATH_UNUSABLE``, ….
    """
    try:
        repository = await ctx.repositories.open()
    except BadInput:
        return None
    branch = await to_thread(repository.current_branch)
    commit = await to_thread(repository.commit, branch or "HEAD")
    place = _place(ctx.settings, commit)
    if not await to_thread(_use, place):
        await ctx.repositories.shielded(_make(ctx, place, commit))
    return ReadCheckout(path=str(place.path), git_dir=str(place.git_dir), commit=commit)


def _place(settings: Settings, commit: str) -> WorktreeLocation:
    home = settings.checkouts / commit
    return WorktreeLocation(commit, home / "files", home / "repository", home / "scratch")


def _use(place: WorktreeLocation) -> bool:
    """Note that a checkout is used now; False if it is not complete."""
    with suppress(FileNotFoundError):
        os.utime(place.path.parent / _READY)
        return True
    return False


async def _make(ctx: Ctx, place: WorktreeLocation, commit: str) -> None:
    async with exclusive(ctx) as repository:
        if not await to_thread(_use, place):
            since = (await ctx.read(lambda tx: tx.one(SQL.oldest_start)) or {"started_at": None})["started_at"]
            await to_thread(_clear, ctx.settings, repository, (since or ctx.store.now()) / SECOND)
            await to_thread(_add, ctx.settings, repository, place, commit)


def _clear(settings: Settings, repository: Repository, since: float) -> None:
    """Remove those that no attempt can be using: they were used last before the oldest one that is under way began."""
    settings.checkouts.mkdir(exist_ok=True)
    used = {home: _used(home) for home in settings.checkouts.iterdir()}
    oldest_first = sorted(used, key=lambda home: used[home])
    for home in oldest_first[: max(len(used) - settings.max_checkouts + 1, 0)]:
        if used[home] < since:
            (home / _READY).unlink(missing_ok=True)
            repository.remove_worktree(home / "files", home / "repository")
            remove_tree(home)


def _used(home: Path) -> float:
    with suppress(OSError):
        return (home / _READY).stat().st_mtime
    return 0.0


def _add(settings: Settings, repository: Repository, place: WorktreeLocation, commit: str) -> None:
    repository.remove_worktree(place.path, place.git_dir)
    remove_tree(place.path.parent)
    add_files(settings, repository, place, None, commit)
    repository.unlist_worktree(place.path)
    remove_tree(place.scratch)
    if not confinement_of(settings).enforced:
        for directory, _, files in os.walk(place.path):
            for path in (*(Path(directory) / name for name in files), Path(directory)):
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode & ~0o222)
    (place.path.parent / _READY).touch()
