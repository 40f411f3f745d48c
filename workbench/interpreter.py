"""Settings of the interpreter and its process that are changed while the servers run, and restored afterwards."""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


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
