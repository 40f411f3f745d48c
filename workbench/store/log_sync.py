"""When SQLite's write-ahead log is synced to the disk."""

from __future__ import annotations

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
        """Open the log, which exists while a connection to the database is open."""
        self._log = os.open(f"{self._path.resolve()}-wal", os.O_RDONLY | os.O_CLOEXEC)

    @property
    def seconds_left(self) -> float | None:
        """How long the commits that are not synced may still wait; None if there are none."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def add(self, events: Sequence[Row]) -> None:
        """Note a commit, with its events."""
        self._events += events
        if self._due is None:
            self._due = time.monotonic() + WAIT_SECONDS

    def sync(self) -> Sequence[Row]:
        """Make all commits durable; the events of those that were not.

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
