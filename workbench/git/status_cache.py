"""Uncommitted files of worktrees, asked for in their box only when something there has changed.

Whether it has is seen from outside by the times and sizes of the files, which are not opened.
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
"""Worktrees that are asked at the same time."""
MOST_FILES = 20_000
"""In larger worktrees, looking at every file costs as much as asking git."""
WORKTREES_CACHED = 1_000
CACHED_SECONDS = 60.0
CACHED_SECONDS_UNSEEN = 2.0
"""How long an answer is good when nothing seems to have changed, and where that cannot be seen."""


@dataclass(frozen=True, slots=True)
class _Entry:
    fingerprint: bytes | None
    files: list[str]


class StatusCache:
    """The uncommitted files of each worktree when it was last asked; one for each project, used on its loop."""

    def __init__(self) -> None:
        self._entries: TLRUCache[Path, _Entry] = TLRUCache(WORKTREES_CACHED, ttu=_expiry)
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def uncommitted(self, checkout: Checkout) -> list[str]:
        """Files that no commit holds, at most as old as the last change seen from outside.

        Raises:
            Unavailable: ``GIT_FAILED``, ``GIT_TIMEOUT``.
        """
        async with self._slots:
            now = await asyncio.to_thread(fingerprint, checkout)
            entry = self._entries.get(checkout.path)
            if entry is None or entry.fingerprint != now:
                entry = self._entries[checkout.path] = await asyncio.to_thread(_ask, checkout)
            return entry.files

    def forget(self, path: Path) -> None:
        """Forget a worktree that is removed."""
        self._entries.pop(path, None)


def _ask(checkout: Checkout) -> _Entry:
    files = checkout.uncommitted()
    return _Entry(fingerprint(checkout), files)  # afterwards: git updates its index


def _expiry(_: Path, entry: _Entry, now: float) -> float:
    return now + (CACHED_SECONDS_UNSEEN if entry.fingerprint is None else CACHED_SECONDS)


def fingerprint(checkout: Checkout) -> bytes | None:
    """Names, times and sizes of all files of a worktree, and of its index; None if they are too many.

    A change of a file's content or mode changes a time (``st_ctime``) that programs cannot set.
    """
    digest = hashlib.blake2b()
    paths = (checkout.git_dir / "index", checkout.git_dir / "HEAD")
    for number, path in enumerate(chain(paths, _below(checkout.path))):
        if number > MOST_FILES:
            return None
        with suppress(OSError):
            found = path.lstat()
            digest.update(f"{path}\0{found.st_ctime_ns}\0{found.st_size}\0{found.st_mode}\0".encode("utf-8", "replace"))
    return digest.digest()


def _below(top: Path) -> Iterator[Path]:
    waiting = [top]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in sorted(islice(entries, MOST_FILES + 1), key=lambda entry: entry.name):
                yield Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
