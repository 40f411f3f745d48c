"""Names a process so that others, perhaps on another machine, can tell whether it still runs."""

from __future__ import annotations

import math
import os
import socket
from functools import cache

import psutil

from workbench.process.reference import ProcessRef, is_running


def process_identity(pid: int | None = None) -> str:
    """The name of a process of this machine, by default this one: ``<machine>/<pid>:<start time>``.

    Raises:
        psutil.NoSuchProcess: there is none with this pid.
    """
    process = psutil.Process(pid)
    return f"{_name_machine()}/{process.pid}:{process.create_time()}"


def has_ended(identity: str) -> bool | None:
    """Whether the process with a name has ended; None if it cannot be seen from here."""
    process = process_named(identity)
    if process is None:
        return None
    running = process.find()
    return running is None or not is_running(running)


def process_named(identity: str) -> ProcessRef | None:
    """The process with a name; None if it cannot be seen from here."""
    machine, _, process = identity.rpartition("/")
    if machine != _name_machine():
        return None
    pid, _, started = process.partition(":")
    try:
        return ProcessRef(int(pid), float(started or math.nan))
    except ValueError:
        return None


@cache
def _name_machine() -> str:
    """The name of this machine and its container, within which a pid means one process."""
    try:
        pids = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 (it is a name, not a path)
    except OSError:
        pids = ""
    return f"{socket.gethostname()}{pids.removeprefix('pid')}"
