"""Locks between processes: a lock file has one holder at a time, and is released when that process ends.

Several processes and threads may wait for a lock. `filelock` acquires one only if its file still exists, so a holder
may remove the file. It follows no link, and forked children do not inherit the lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import Unavailable

POLL_SECONDS = 0.02


@contextmanager
def held(path: Path, wait_seconds: float = 0.0, *, remove: bool = False) -> Iterator[bool]:
    """Hold the lock file at `path`, creating it if necessary; yields False if another holder kept it.

    Args:
        wait_seconds: how long to wait for another holder.
        remove: remove the file at the end, while the lock is still held.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``: the file cannot be created, or is a link.
    """
    from filelock import FileLock, Timeout  # takes 40 ms to import

    # Not bound to a thread: another thread may release it.
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
