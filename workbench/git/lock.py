"""One at a time, across processes: who makes, imports, integrates or removes worktrees of a repository."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import Unavailable

_PAUSE_SECONDS = 0.02


@contextmanager
def held(path: Path, limit: float) -> Iterator[None]:
    """Hold the lock file at `path`; it ends with the process, however that ends.

    Raises:
        Unavailable: ``GIT_BUSY``: others held it for `limit` seconds. ``GIT_FAILED``.
    """
    with _opened(path) as file:
        until = time.monotonic() + limit
        while not _taken(file):
            if time.monotonic() >= until:
                raise Unavailable("GIT_BUSY", f"Other work on this repository has not ended in {limit:g} s. Try again.")
            time.sleep(_PAUSE_SECONDS)
        yield


@contextmanager
def tried(path: Path) -> Iterator[bool]:
    """Hold the lock file at `path` unless somebody else does; whether it is held.

    Raises:
        Unavailable: ``GIT_FAILED``.
    """
    with _opened(path) as file:
        yield _taken(file)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Unavailable("GIT_FAILED", f"There can be no lock in {path.parent}: {error}.") from error
    try:
        yield file
    finally:
        os.close(file)


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
