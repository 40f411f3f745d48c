"""Identifies a process by its pid and start time, because the system reuses pids."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

_CLOCK_SECONDS = 2.0
"""Start times that differ by less count as equal: the system derives them from a clock that may be corrected."""


@dataclass(frozen=True, slots=True)
class ProcessRef:
    """One process. Another that gets the same pid later does not match it.

    Args:
        pid: its process id.
        started: psutil's `create_time`, in seconds since the epoch.
        mark: the mark that its descendants inherit (see `marks`); None if unknown.
    """

    pid: int
    started: float
    mark: str | None = field(default=None, compare=False)

    @classmethod
    def of_new(cls, pid: int, mark: str) -> ProcessRef:
        """A process that was just started, even if it has already ended and been reaped."""
        with suppress(psutil.NoSuchProcess):
            return cls(pid, psutil.Process(pid).create_time(), mark)
        return cls(pid, time.time(), mark)

    def find(self) -> psutil.Process | None:
        """The process itself, while it runs or is a zombie."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.started) < _CLOCK_SECONDS:
                return process
        return None


def is_running(process: psutil.Process) -> bool:
    """Whether a process runs; a zombie does not."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
