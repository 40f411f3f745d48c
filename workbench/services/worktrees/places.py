"""How services reach git: the person's repository, one change at a time, and worktrees through their box."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from workbench.confinement import Box
from workbench.errors import Unavailable
from workbench.git import Checkout, Identity, Repository
from workbench.ops import Ctx
from workbench.services.processes import sandbox
from workbench.services.worktrees.status_cache import Glances
from workbench.settings import Settings
from workbench.store.base import Row

T = TypeVar("T")
AFTER_PROBLEM_SECONDS = 30.0
UNSEEN_SECONDS = 5.0
"""How long a branch that could not be taken over is left alone, and one that cannot be seen from outside."""

Settle = Callable[[Ctx, Repository], Awaitable[None]]
"""Undoes or does again what a crash left half done. Whoever is in `ground` knows that nobody else is at it."""

COMMITTER = Identity("Workbench", "workbench@localhost")
"""Signs what Workbench itself commits."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worktree lies: its files, its own git directory, and what confined commands have for a home."""

    name: str
    path: Path
    git_dir: Path
    scratch: Path

    @classmethod
    def of(cls, settings: Settings, name: str) -> Place:
        """The place of the worktree `name`."""
        return cls(name, settings.worktrees / name, settings.repositories / name, settings.scratch / name)

    @classmethod
    def of_gates(cls, settings: Settings, approval_id: int) -> Place:
        """Where the gates of an integration run."""
        home = settings.gates / str(approval_id)
        return cls(f"gates-{approval_id}", home / "files", home / "repository", home / "scratch")


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt to take over a branch that was seen at some commit, and why it failed if it did."""

    seen: str | None
    problem: str | None = None
    at: float = field(default_factory=time.monotonic)

    def holds(self, seen: str | None) -> bool:
        """Whether another attempt would only say the same again."""
        lasts = AFTER_PROBLEM_SECONDS if self.problem else UNSEEN_SECONDS if seen is None else 0.0
        return seen == self.seen and time.monotonic() - self.at < lasts


class Repositories:
    """What an open project knows of its repository; one for each `Workbench`.

    Changes happen one at a time, in this process and across processes.
    """

    def __init__(self, settings: Settings, settle: Sequence[Settle]) -> None:
        self._settings = settings
        self._settle = tuple(settle)
        self._lock = asyncio.Lock()
        self._found: Repository | None = None
        self.glances = Glances()
        self.tried: dict[str, Tried] = {}
        self._under_way: set[asyncio.Task[Any]] = set()

    async def open(self) -> Repository:
        """The person's repository.

        Raises:
            BadInput, Unavailable: see `Repository.open`.
        """
        if self._found is None or not self._found.git_dir.is_dir():
            self._found = await asyncio.to_thread(Repository.open, self._settings.project)
        return self._found

    @asynccontextmanager
    async def ground(self, ctx: Ctx) -> AsyncIterator[Repository]:
        """What every change stands on: the repository, locked, and nothing in it half done.

        Raises:
            Unavailable: ``GIT_BUSY``.
        """
        async with self.locked() as repository:
            for settle in self._settle:
                await settle(ctx, repository)
            yield repository

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[Repository]:
        """The repository, while nobody else changes it.

        Raises:
            Unavailable: ``GIT_BUSY``.
        """
        async with self._lock:
            repository = await self.open()
            lock = repository.lock()
            await self.whole(asyncio.to_thread(lock.__enter__))
            try:
                yield repository
            finally:
                lock.__exit__(None, None, None)

    async def whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something to its end, even if whoever asked for it goes away."""
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def settled(self) -> None:
        """Return once nothing is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)


def place_of(ctx: Ctx, row: Row) -> Place:
    """Where a worktree of the store lies."""
    place = Place.of(ctx.settings, row["name"])
    return Place(place.name, Path(row["path"]), Path(row["git_dir"] or place.git_dir), place.scratch)


def box_of(settings: Settings, repository: Repository, place: Place) -> Box:
    """What may be touched by what runs in a worktree.

    Raises:
        Unavailable: ``CONFINEMENT_UNAVAILABLE``.
    """
    place.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    return sandbox.box(
        settings,
        worktree=place.path,
        git_dir=place.git_dir,
        objects=repository.object_directories(),
        scratch=place.scratch,
    )


def checkout_of(settings: Settings, repository: Repository, place: Place) -> Checkout:
    """A worktree seen from inside its box. Blocks on making its home."""
    box = box_of(settings, repository, place)
    return Checkout(
        place.path, place.git_dir, wrap=box.argv, environment=box.environment(os.environ), limit=repository.limit
    )


def heads(repository: Repository, names: Iterable[str]) -> dict[str, str]:
    """Where the person's branches of these names are, in one question; those that are not there are left out."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    found = repository.read("for-each-ref", "--format=%(objectname) %(refname)", *(f"refs/heads/{n}" for n in wanted))
    rows = (line.partition(" ")[::2] for line in found.text.splitlines())
    commits = {ref.removeprefix("refs/heads/"): commit for commit, ref in rows}
    return {name: commits[name] for name in wanted if name in commits}


def is_there(place: Place) -> bool:
    """Whether a worktree has both its files and its own repository."""
    return place.path.is_dir() and place.git_dir.is_dir()


def gone(place: Place) -> Unavailable:
    """The error for one that has not."""
    return Unavailable(
        "WORKTREE_GONE",
        f"The files of the worktree {place.name} are gone. Its branch is as it was when it was last taken over; "
        "discard the worktree and create another one.",
        path=str(place.path),
    )
