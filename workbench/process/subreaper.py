"""Adopts orphans (Linux): descendants whose parents end become children of this process, not of init."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

import psutil

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """Become the parent of descendants whose own parents end; False where the system does not support that."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def reap_orphans(*, except_pid: int) -> None:
    """Reap the children that have ended.

    Args:
        except_pid: a child that was started here, not adopted; the code that started it waits for it.
    """
    for child in psutil.Process().children():
        with suppress(ChildProcessError, psutil.Error):
            if child.pid != except_pid and child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def reaped_cpu_seconds() -> float:
    """Processor seconds of all reaped children of this process."""
    times = psutil.Process().cpu_times()
    return float(times.children_user + times.children_system)
