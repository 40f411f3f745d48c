"""A command and everything it starts: what it uses, and that nothing of it stays.

A worker's process adopts what its descendants leave behind (`adopt_orphans`), so that whatever a command started stays
below it, in a session of its own or not. Where that cannot be done, they are known by a variable that each inherits.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

import psutil

from workbench.process import marked

_PR_SET_CHILD_SUBREAPER = 36
_POLL_SECONDS = 0.01
_KILL_SECONDS = 10.0


def adopt_orphans() -> bool:
    """Become the parent of descendants whose own parents end; whether this system does that (Linux)."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a family has used: processor seconds so far, and bytes of memory now."""

    cpu_seconds: float
    memory_bytes: int


class Family:
    """A command that was started, and all that it started.

    Args:
        pid: the command; the leader of its group.
        mark: the value that is in the environment of all of them.
        alone: this process adopts orphans and has started nothing else: all that is below it is the family.
    """

    def __init__(self, pid: int, mark: str, *, alone: bool) -> None:
        self._pid = pid
        self._mark = mark
        self._alone = alone
        self._reaped = _reaped()

    def members(self) -> list[psutil.Process]:
        """Those who live now."""
        found = _below(os.getpid() if self._alone else self._pid)
        if not self._alone:
            found |= set(marked(self._mark))
        return [process for process in found if _lives(process)]

    def usage(self) -> Usage:
        """What they use, those too that have ended and were waited for."""
        seconds, memory = _reaped() - self._reaped if self._alone else 0.0, 0
        for process in self.members():
            with suppress(psutil.Error):
                seconds += sum(process.cpu_times()[:4])
                memory += process.memory_info().rss
        return Usage(seconds, memory)

    async def end(self, grace: float) -> None:
        """End all of them: SIGTERM, up to `grace` seconds, SIGKILL until none is left."""
        self._signal(self.members(), signal.SIGTERM)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and self.members():
            await asyncio.sleep(_POLL_SECONDS)
        await self.kill()

    async def kill(self) -> None:
        """Kill all of them, until none is left; one that the system does not let go of is given up after a while."""
        deadline = time.monotonic() + _KILL_SECONDS
        while (left := self.members()) and time.monotonic() < deadline:
            self._signal(left, signal.SIGKILL)
            await asyncio.sleep(_POLL_SECONDS)
        self._bury()

    def _signal(self, to: Collection[psutil.Process], number: signal.Signals) -> None:
        """Send to the group, which leaves nobody in it the time to fork, and to all who left it."""
        if any(_group(process.pid) == self._pid for process in to):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, number)
        for process in to:
            with suppress(psutil.Error):
                if _group(process.pid) != self._pid:
                    process.send_signal(number)

    def _bury(self) -> None:
        """Wait for those who were adopted and have ended; for the command itself somebody else does."""
        if not self._alone:
            return
        for child in psutil.Process().children():
            with suppress(ChildProcessError, psutil.Error):
                if child.pid != self._pid and child.status() == psutil.STATUS_ZOMBIE:
                    os.waitpid(child.pid, os.WNOHANG)


def _below(pid: int) -> set[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        return {*top.children(recursive=True), *((top,) if pid != os.getpid() else ())}
    return set()


def _group(pid: int) -> int | None:
    with suppress(ProcessLookupError, PermissionError):
        return os.getpgid(pid)
    return None


def _lives(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def _reaped() -> float:
    """Processor seconds of all children of this process that were waited for."""
    times = psutil.Process().cpu_times()
    return float(times.children_user + times.children_system)
