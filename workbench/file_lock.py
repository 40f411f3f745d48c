"""Locks between processes: a lock file has one holder at a time, and is free again when that process ends.

Several processes and threads may wait for one. `filelock` takes a lock only if its file is still there, so
that a holder may remove the file; it follows no link, and a forked child does not inherit what is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import Unavailable

POLL_SECONDS = 0.02


@contextmanager
def held(path: Path, wait_seconds: float = 0.0, *, remove: bool = False) -> Iterator[bool]:
    """Hold the lock file at `path`, which is made if need be; whether it is held, or another holder kept it.

    Args:
        wait_seconds: how long to wait for another holder.
        remove: remove the file at the end, while it is still held.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``: the file cannot be made, or is a link.
    """
    from filelock import FileLock, Timeout  # takes 40 ms to import

    # Not of one thread: it may be released by another one than took it.
    lock = FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False, poll_interval=POLL_SECONDS)
    try:
        lock.acquire(wait_seconds)
    except Timeout:
        is_held = False
    except OSError as error:
        raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be locked: {error.strerror}.") from error
    else:
        is_held = True
    try:
        yield is_held
    finally:
        if is_held and remove:
            path.unlink(missing_ok=True)
        lock.release()
