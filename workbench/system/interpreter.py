"""Settings of the interpreter and its process that are changed for a while, and restored afterwards."""

from __future__ import annotations

import gc
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

START_ALLOCATIONS = 100_000
"""For `rare_collections` during a start: imports leave no garbage, and to search what they make takes a tenth of their
time."""


@contextmanager
def short_switches(seconds: float) -> Iterator[None]:
    """Have threads take turns at least this often, so that the servers answer while a cell computes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, seconds))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def rare_collections(allocations: int) -> Iterator[None]:
    """Search for cyclic garbage at most once in so many allocations.

    Every message under way is a hundred objects that will soon be gone; to search them all, again and again,
    takes a quarter of a busy server's time, in pauses of up to 0.2 s.
    """
    before = gc.get_threshold()
    if before[0]:  # 0: somebody has switched the searches off
        gc.set_threshold(max(before[0], allocations), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def importing() -> Iterator[None]:
    """Search for no cyclic garbage within the block, and count everything there is by then as old.

    Imports leave no garbage, but hundreds of thousands of objects. What is old is searched much less often.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # else somebody has frozen objects, which have to stay so
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


@contextmanager
def many_files() -> Iterator[int]:
    """Let the process open as many files as the system allows; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems allow fewer than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        yield most if most != resource.RLIM_INFINITY else sys.maxsize
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Within the block SIGTERM, which batch systems send before they end a job, and SIGHUP, when a terminal is closed,
    are interrupts: what the block has started ends with it. A signal that was ignored stays so."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)  # an event loop's own, which cancels its task

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    changed = {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}
    for number in changed:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in changed.items():
            signal.signal(number, handler)
