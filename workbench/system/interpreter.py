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
"""For `rare_collections` during a start: imports leave no garbage, and a search takes a tenth of their time."""


@contextmanager
def short_switches(seconds: float) -> Iterator[None]:
    """Have threads take turns at least this often, so that the servers answer while a cell computes."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(min(interval, seconds))
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


@contextmanager
def rare_collections(allocations: int) -> Iterator[None]:
    """Search for cyclic garbage at most once in `allocations` allocations.

    A message in flight is a hundred objects that soon go. To search them again and again takes a quarter of a busy
    server's time, in pauses of up to 0.2 s.
    """
    thresholds = gc.get_threshold()
    if thresholds[0]:  # 0: somebody has switched the searches off
        gc.set_threshold(max(thresholds[0], allocations), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def importing() -> Iterator[None]:
    """Search for no cyclic garbage within the block, then move all objects to the oldest generation.

    Imports leave no garbage, but hundreds of thousands of objects. The oldest generation is rarely searched.
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
    """Let the process open as many files as the system allows; yields their number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems allow fewer than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        yield limit if limit != resource.RLIM_INFINITY else sys.maxsize
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """Treat SIGTERM (from a batch system that ends a job) and SIGHUP (from a closed terminal) as interrupts, so that
    whatever the block started ends with it. A signal that was ignored stays ignored."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler):
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)  # an event loop's own, which cancels its task

    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    replaced = {number: handler for number, handler in handlers.items() if handler != signal.SIG_IGN}
    for number in replaced:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)
