"""A clock that leaps: in a process that has run this file, all of Python's time is ahead of the machine's.

How far ahead is in a file that all such processes map, and that `clock.py` changes. Whoever waits for a time listens
on a socket in the clock's directory, so that a leap wakes it; nobody polls.
"""

from __future__ import annotations

import itertools
import mmap
import os
import select
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

AHEAD = "ahead"
WAITERS = "waiters"
_NUMBERS = itertools.count()


def install(directory: str) -> None:
    """Make this process's time that of the clock in a directory."""
    with open(os.path.join(directory, AHEAD), "rb") as file:
        ahead = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)
    waiters = os.path.join(directory, WAITERS)

    def nanoseconds() -> int:
        return int(struct.unpack_from("<q", ahead)[0])

    def later(real: Callable[[], float]) -> Callable[[], float]:
        return lambda: real() + nanoseconds() / 1e9

    def later_ns(real: Callable[[], int]) -> Callable[[], int]:
        return lambda: real() + nanoseconds()

    time.time, time.monotonic = later(time.time), later(time.monotonic)
    time.time_ns, time.monotonic_ns = later_ns(time.time_ns), later_ns(time.monotonic_ns)

    def listening() -> socket.socket:
        woken = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        woken.setblocking(False)
        woken.bind(os.path.join(waiters, f"{os.getpid()}-{next(_NUMBERS)}"))
        return woken

    here = threading.local()

    def sleep(seconds: float) -> None:
        end = time.monotonic() + seconds
        if getattr(here, "pid", None) != os.getpid():
            here.woken, here.pid = listening(), os.getpid()
        while (left := end - time.monotonic()) > 0:
            if select.select([here.woken], [], [], left)[0]:
                _drain(here.woken)

    time.sleep = sleep

    class LeapingSelector(selectors.EpollSelector):
        """Waits until a time of the clock."""

        def __init__(self) -> None:
            super().__init__()
            self._woken = listening()
            self.register(self._woken, selectors.EVENT_READ)

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            end = None if timeout is None else time.monotonic() + timeout
            while True:
                left = None if end is None else max(end - time.monotonic(), 0.0)
                events = super().select(left)
                others = [event for event in events if event[0].fileobj is not self._woken]
                if len(others) < len(events):
                    _drain(self._woken)
                if others or (end is not None and time.monotonic() >= end):
                    return others

        def close(self) -> None:
            with suppress(OSError):
                os.unlink(self._woken.getsockname())
            self._woken.close()
            super().close()

    def selector() -> selectors.BaseSelector:
        is_for_loop = str(sys._getframe(1).f_globals["__name__"]).startswith("asyncio.")
        return LeapingSelector() if is_for_loop else selectors.EpollSelector()

    selectors.DefaultSelector = selector  # type: ignore[assignment,misc]


def _drain(woken: socket.socket) -> None:
    with suppress(BlockingIOError):
        while True:
            woken.recv(16)


if __name__ == "warp":  # as the `night.pth` of `clock.py` imports it
    install(os.environ["NIGHT_CLOCK"])
