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
_BEHIND_SECONDS = 1.0
"""More than the time of a file is behind the clock."""


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
        repository = await ctx.local.repositories.open()
    except BadInput:
        return None
    branch = await to_thread(repository.current_branch)
    commit = await to_thread(repository.commit, branch or "HEAD")
    place = _place(ctx.settings, commit)
    if not await to_thread(_use, place):
        await ctx.local.repositories.shielded(_make(ctx, place, commit))
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
            await to_thread(_clear, ctx.settings, repository, await begin_of_use(ctx))
            await to_thread(_add, ctx.settings, repository, place, commit)


async def begin_of_use(ctx: Ctx) -> float:
    """Seconds of the time before which a checkout must have been used last, so that no attempt can be using it."""
    claimed_at = (await ctx.read(lambda tx: tx.one(SQL.oldest_claim)) or {"claimed_at": None})["claimed_at"]
    return (claimed_at or ctx.store.now()) / SECOND - _BEHIND_SECONDS


def _clear(settings: Settings, repository: Repository, begin: float) -> None:
    """Remove those that were used last, as far as there are too many and no attempt can be using them."""
    settings.checkouts.mkdir(exist_ok=True)
    oldest_first = sorted(settings.checkouts.iterdir(), key=last_use)
    for home in oldest_first[: max(len(oldest_first) - settings.max_checkouts + 1, 0)]:
        remove(repository, home, begin)


def last_use(home: Path) -> float:
    """When a checkout was used last, in seconds; 0 if it is not complete."""
    with suppress(OSError):
        return (home / _READY).stat().st_mtime
    return 0.0


def remove(repository: Repository, home: Path, begin: float) -> None:
    """Remove a checkout that was used last before `begin`. Call it with exclusive access to the repository."""
    ready, taken = home / _READY, home / f"{_READY}.removed"
    with suppress(FileNotFoundError):
        ready.rename(taken)  # from now on, who wants to use it waits
        if taken.stat().st_mtime >= begin:
            taken.rename(ready)
            return
    repository.remove_worktree(home / "files", home / "repository")
    remove_tree(home)


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
