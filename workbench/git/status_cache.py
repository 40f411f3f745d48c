"""Caches the uncommitted files of worktrees, so that git runs in a worktree's box only when something has changed.

Changes are detected from outside, by the times and sizes of files, without opening them.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from cachetools import TLRUCache

from workbench.git.checkout import Checkout

AT_ONCE = 4
"""How many worktrees are queried at the same time."""
MAX_FILES = 20_000
"""In larger worktrees, checking every file costs as much as running git."""
WORKTREES_CACHED = 1_000
CACHED_SECONDS = 60.0
CACHED_SECONDS_TOO_LARGE = 2.0
"""How long an entry is valid if no change is detected; the second, in worktrees with too many files to check."""


@dataclass(frozen=True, slots=True)
class _Entry:
    fingerprint: bytes | None
    files: list[str]


class StatusCache:
    """The uncommitted files of each worktree; one cache for each project, used on its loop only."""

    def __init__(self) -> None:
        self._entries: TLRUCache[Path, _Entry] = TLRUCache(WORKTREES_CACHED, ttu=_expiry)
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def uncommitted(self, checkout: Checkout) -> list[str]:
        """The uncommitted files, as of the last detected change.

        Raises:
            Unavailable: ``GIT_FAILED``, ``GIT_TIMEOUT``.
        """
        async with self._slots:
            current = await asyncio.to_thread(fingerprint, checkout)
            entry = self._entries.get(checkout.path)
            if entry is None or entry.fingerprint != current:
                entry = self._entries[checkout.path] = await asyncio.to_thread(_query, checkout)
            return entry.files

    def forget(self, path: Path) -> None:
        """Remove a worktree from the cache."""
        self._entries.pop(path, None)


def _query(checkout: Checkout) -> _Entry:
    files = checkout.uncommitted()
    return _Entry(fingerprint(checkout), files)  # git may have updated the index just now


def _expiry(_: Path, entry: _Entry, now: float) -> float:
    return now + (CACHED_SECONDS_TOO_LARGE if entry.fingerprint is None else CACHED_SECONDS)


def fingerprint(checkout: Checkout) -> bytes | None:
    """A hash of the names, times, sizes and modes of all files of a worktree, and of its index; None if too many.

    Any change of a file's content or mode changes its ``st_ctime``, which programs cannot set.
    """
    digest = hashlib.blake2b()
    paths = (checkout.git_dir / "index", checkout.git_dir / "HEAD")
    for number, path in enumerate(chain(paths, _walk(checkout.path))):
        if number > MAX_FILES:
            return None
        with suppress(OSError):
            info = path.lstat()
            digest.update(f"{path}\0{info.st_ctime_ns}\0{info.st_size}\0{info.st_mode}\0".encode("utf-8", "replace"))
    return digest.digest()


def _walk(top: Path) -> Iterator[Path]:
    waiting = [top]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in sorted(islice(entries, MAX_FILES + 1), key=lambda entry: entry.name):
                yield Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
