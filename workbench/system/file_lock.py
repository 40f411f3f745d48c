"""Locks between processes: a lock file has one holder at a time, and is released when that process ends.

Several processes and threads may wait for a lock. `filelock` acquires one only if its file still exists, so a holder
may remove the file. It follows no link, and forked children do not inherit the lock.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.errors import Unavailable
from workbench.system.users import owner, user_name

POLL_SECONDS = 0.02


@contextmanager
def held(path: Path, wait_seconds: float = 0.0, *, remove: bool = False) -> Iterator[bool]:
    """Hold the lock file at `path`, creating it if necessary; yields False if another holder kept it.

    Whoever may write to its directory may lock it, such as the users of a shared repository.

    Args:
        wait_seconds: how long to wait for another holder.
        remove: remove the file at the end, while the lock is still held.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``: the file cannot be created, or is a link.
    """
    from filelock import FileLock, Timeout  # takes 40 ms to import

    # Not bound to a thread: another thread may release it.
    lock = FileLock(
        path, mode=_mode(path.parent), thread_local=False, fallback_to_soft=False, poll_interval=POLL_SECONDS
    )
    try:
        lock.acquire(wait_seconds)
    except Timeout:
        is_held = False
    except OSError as error:
        text = f"{path} cannot be locked: {error.strerror}.{_whose(path)}"
        raise Unavailable("PROJECT_UNWRITABLE", text) from error
    else:
        is_held = True
    try:
        yield is_held
    finally:
        if is_held and remove:
            path.unlink(missing_ok=True)
        lock.release()


def _mode(directory: Path) -> int:
    """The mode of a lock file: whoever may write to its directory may read and write it, and nobody else."""
    with suppress(OSError):
        writable = stat.S_IMODE(directory.stat().st_mode) & 0o022
        return 0o600 | writable | writable << 1
    return 0o600


def _whose(path: Path) -> str:
    """What to do about a lock file of another user; empty if it is not one's."""
    if (user := owner(path)) in (None, os.geteuid()):
        return ""
    return (
        f" It belongs to another user ({user_name(user)}). Work in a clone of your own, or ask them to give the group "
        f"access: `chmod g+rw {path}`."
    )
