"""Uncommitted files of worktrees, asked for in their box only when something there has changed.

Whether it has is seen from outside by the times and sizes of the files, which are not opened.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from workbench.git.checkout import Checkout

AT_ONCE = 4
"""Worktrees that are asked at the same time."""
MOST_FILES = 20_000
"""In larger worktrees, looking at every file costs as much as asking git."""
LASTS_SECONDS = 60.0
SHORT_SECONDS = 2.0
"""How long an answer is good when nothing seems to have changed; and where that cannot be seen."""


@dataclass(frozen=True, slots=True)
class _Entry:
    print: bytes | None
    files: list[str]
    at: float


class StatusCache:
    """What was seen of each worktree last; one for each project."""

    def __init__(self) -> None:
        self._entries: dict[Path, _Entry] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def uncommitted(self, checkout: Checkout) -> list[str]:
        """Files that no commit holds, at most as old as the last change seen from outside.

        Raises:
            Unavailable: ``GIT_FAILED``, ``GIT_TIMEOUT``.
        """
        async with self._slots:
            return await asyncio.to_thread(self._ask, checkout)

    def forget(self, path: Path) -> None:
        """A worktree is gone."""
        self._entries.pop(path, None)

    def _ask(self, checkout: Checkout) -> list[str]:
        now, seen = time.monotonic(), fingerprint(checkout)
        last = self._entries.get(checkout.path)
        lasts = SHORT_SECONDS if seen is None else LASTS_SECONDS
        if last is not None and last.print == seen and now - last.at < lasts:
            return last.files
        files = checkout.uncommitted()
        self._entries[checkout.path] = _Entry(fingerprint(checkout), files, now)
        return files


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
