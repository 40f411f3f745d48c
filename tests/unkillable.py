"""Processes that SIGKILL does not end, like those in an uninterruptible sleep, for as long as a test needs them.

A tracer holds them at the moment of their exit (PTRACE_O_TRACEEXIT): the signal has arrived, the process stays. That
takes no privileges but those to trace them. Run as a program, this file is the tracer.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

PTRACE_SEIZE, PTRACE_O_TRACEEXIT = 0x4206, 0x40


@contextmanager
def unkillable(*pids: int) -> Iterator[None]:
    """Processes do not end while the block lasts; those that were killed in it end after it."""
    if sys.platform != "linux":
        pytest.skip("needs Linux")
    argv = [sys.executable, __file__, *map(str, pids)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tracer:
        assert tracer.stdin is not None
        assert tracer.stdout is not None
        try:
            if said := tracer.stdout.readline().strip().removeprefix("held"):
                pytest.skip(f"this system does not let the tests trace a process: {said}")
            yield
        finally:
            tracer.stdin.close()  # it ends then, and with it its hold


def hold(*pids: int) -> None:
    """Trace processes until the end of standard input."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long] * 4
    for pid in pids:
        if ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT):
            sys.exit(print(os.strerror(ctypes.get_errno()), flush=True))
    print("held", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    hold(*map(int, sys.argv[1:]))
