"""Syncs SQLite's write-ahead log to the disk, and tells whether a process has it open."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from pathlib import Path

from workbench.errors import Unavailable
from workbench.store.base import Row
from workbench.store.sqlite_errors import UNSYNCED

WAIT_SECONDS = 0.02
"""How long a commit that need not be durable at once may wait for one that must be, to be synced with it."""

_fdatasync = getattr(os, "fdatasync", os.fsync)  # macOS has only the latter


def log_of(store: Path) -> Path:
    """The log of a store, which exists while the store is open, and after a crash."""
    return store.with_name(f"{store.name}-wal")


def is_open(store: Path) -> bool:
    """Whether a process, perhaps this one, has a store open; call within the fence."""
    try:
        fd = os.open(log_of(store.resolve()), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def was_left(store: Path) -> bool:
    """Whether the last process that had a store open did not close it; call within the fence."""
    log = log_of(store.resolve())
    return log.exists() and log.stat().st_size > 0 and not is_open(store)


class LogSync:
    """Syncs the log of a database, and holds the events of the commits that are not synced yet.

    Args:
        path: of the database.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log: int | None = None
        self._events: list[Row] = []
        self._due: float | None = None

    def open(self) -> None:
        """Open the log, and lock it to show other processes that it is open."""
        self._log = os.open(log_of(self._path.resolve()), os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._log, fcntl.LOCK_SH)

    @property
    def seconds_left(self) -> float | None:
        """How long unsynced commits may still wait; None without any."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def add(self, events: Sequence[Row]) -> None:
        """Note a commit, with its events."""
        self._events += events
        if self._due is None:
            self._due = time.monotonic() + WAIT_SECONDS

    def sync(self) -> Sequence[Row]:
        """Make all commits durable; returns the events of those that were not.

        Raises:
            Unavailable: ``STORE_UNSYNCED``.
        """
        assert self._log is not None
        events, self._events, self._due = self._events, [], None
        try:
            _fdatasync(self._log)
        except OSError as error:
            raise Unavailable(*UNSYNCED, reason=str(error)) from error
        return events

    def close(self) -> None:
        """Close the log, if it is open."""
        if self._log is not None:
            os.close(self._log)
