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
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Unavailable("GIT_FAILED", f"There can be no lock in {path.parent}: {error}.") from error
    try:
        _wait(file, limit)
        yield
    finally:
        os.close(file)


def _wait(file: int, limit: float) -> None:
    until = time.monotonic() + limit
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise Unavailable(
                    "GIT_BUSY", f"Other work on this repository has not ended in {limit:g} s. Try again."
                ) from None
        time.sleep(_PAUSE_SECONDS)
