"""Access to the user's repository: opened once, one change at a time, no change interrupted by cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from cachetools import TLRUCache

from workbench.git.repository import Repository
from workbench.git.run import Start, start_alone
from workbench.git.status_cache import StatusCache

T = TypeVar("T")

IMPORTS_CACHED = 1_000
RETRY_FAILED_SECONDS = 30.0
RETRY_UNREADABLE_SECONDS = 5.0
"""How long until an import is retried: of a commit that failed, and of a branch that cannot be read from outside."""

UnverifiedBranch = tuple[str, str | None]
"""The name of a worktree, and the commit of its branch as read from outside; None if it cannot be read."""


@dataclass(frozen=True, slots=True)
class ImportAttempt:
    """An attempt to import a branch; `problem` says why it failed."""

    problem: str | None = None


class Repositories:
    """The user's repository in an open project, with caches for its worktrees.

    Changes happen one at a time, in this process and across processes. `start` starts git in worktrees.
    """

    def __init__(self, project: Path, start: Start = start_alone) -> None:
        self._project = project
        self._start = start
        self._lock = asyncio.Lock()
        self._opened: Repository | None = None
        self.status_cache = StatusCache()
        self.import_attempts: TLRUCache[UnverifiedBranch, ImportAttempt] = TLRUCache(IMPORTS_CACHED, ttu=_retry_at)
        """Recent attempts, while a retry would give the same result."""
        self._running: set[asyncio.Task[Any]] = set()

    async def open(self) -> Repository:
        """The user's repository.

        Raises:
            BadInput, Unavailable: see `Repository.open`.
        """
        if self._opened is None or not self._opened.git_dir.is_dir():
            opened = await asyncio.to_thread(Repository.open, self._project)
            self._opened = replace(opened, start_in_worktrees=self._start)
        return self._opened

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[Repository]:
        """Exclusive access to the repository.

        Raises:
            Unavailable: ``GIT_BUSY``.
        """
        async with self._lock:
            repository = await self.open()
            lock = repository.lock()
            await self.shielded(asyncio.to_thread(lock.__enter__))
            try:
                yield repository
            finally:
                lock.__exit__(None, None, None)

    async def shielded(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end, even if the caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def settled(self) -> None:
        """Wait until no `shielded` work is running."""
        while self._running:
            await asyncio.wait(self._running)


def _retry_at(branch: UnverifiedBranch, attempt: ImportAttempt, now: float) -> float:
    if attempt.problem:
        return now + RETRY_FAILED_SECONDS
    return now if branch[1] else now + RETRY_UNREADABLE_SECONDS
