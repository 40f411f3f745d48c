"""How a program reaches the person's repository: opened once, changed one at a time, never left half changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from workbench.git.repository import Repository
from workbench.git.status_cache import StatusCache

T = TypeVar("T")

RETRY_AFTER_FAILURE_SECONDS = 30.0
RETRY_UNREADABLE_SECONDS = 5.0
"""How long a branch that could not be imported is left alone, and one whose commit cannot be read from outside."""


@dataclass(frozen=True, slots=True)
class ImportAttempt:
    """An attempt to import a branch that was seen at some commit, and why it failed if it did."""

    seen: str | None
    problem: str | None = None
    at: float = field(default_factory=time.monotonic)

    def holds(self, seen: str | None) -> bool:
        """Whether another attempt would have the same outcome."""
        lasts = RETRY_AFTER_FAILURE_SECONDS if self.problem else RETRY_UNREADABLE_SECONDS if seen is None else 0.0
        return seen == self.seen and time.monotonic() - self.at < lasts


class Repositories:
    """The person's repository as one open project uses it, and what is cached of it and its worktrees.

    Changes happen one at a time, in this process and across processes.
    """

    def __init__(self, project: Path) -> None:
        self._project = project
        self._lock = asyncio.Lock()
        self._opened: Repository | None = None
        self.status_cache = StatusCache()
        self.import_attempts: dict[str, ImportAttempt] = {}
        self._under_way: set[asyncio.Task[Any]] = set()

    async def open(self) -> Repository:
        """The person's repository.

        Raises:
            BadInput, Unavailable: see `Repository.open`.
        """
        if self._opened is None or not self._opened.git_dir.is_dir():
            self._opened = await asyncio.to_thread(Repository.open, self._project)
        return self._opened

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[Repository]:
        """The repository, while nobody else changes it.

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
        """Run `work` to its end, even if the caller is cancelled meanwhile."""
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def settled(self) -> None:
        """Return once nothing that was `shielded` is running."""
        while self._under_way:
            await asyncio.wait(self._under_way)
