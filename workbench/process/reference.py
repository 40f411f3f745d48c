"""Identifies a process: by its pid and start time, because the system reuses pids; and for others, perhaps on another
machine, by a name by which they can tell whether it still runs.
"""

from __future__ import annotations

import math
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

import psutil

from workbench.state.machine import system_id

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


def process_identity(pid: int | None = None) -> str:
    """The name of a process of this machine, by default this one: ``<machine>/<pid>:<start time>``.

    Raises:
        psutil.NoSuchProcess: there is none with this pid.
    """
    process = psutil.Process(pid)
    return f"{_machine()}/{process.pid}:{process.create_time()}"


def has_ended(identity: str) -> bool | None:
    """Whether the process with a name has ended; None if it cannot be seen from here."""
    process = process_named(identity)
    if process is None:
        return None
    found = process.find()
    return found is None or not is_running(found)


def process_named(identity: str) -> ProcessRef | None:
    """The process with a name; None if it cannot be seen from here."""
    machine, _, process = identity.rpartition("/")
    if machine != _machine():
        return None
    pid, _, started = process.partition(":")
    try:
        return ProcessRef(int(pid), float(started or math.nan))
    except ValueError:
        return None


@cache
def _machine() -> str:
    """This machine, and the container on it: within one, a pid means one process. Host names are not unique."""
    try:
        pids = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 (it is a name, not a path)
    except OSError:
        pids = ""
    return f"{socket.gethostname()}.{system_id()[:12]}{pids.removeprefix('pid')}"
