"""Runs programs for Workbench's own work: Ctrl-C interrupts Workbench, never one of them.

Ctrl-C in a terminal, and the interrupt of a notebook's kernel, send SIGINT to a whole process group. A program leaves
that group only some time after it was forked, and SIGINT would end it before. So SIGINT is blocked while it starts.
It stays blocked in the program: use this for programs that are ended with SIGTERM.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

STOP_SECONDS = 5.0
"""How long a program may clean up after SIGTERM."""


@contextmanager
def started(argv: Sequence[str], *, keeps_session: bool = False, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a process group of its own. It has ended when the block ends.

    An error in the block, such as an interrupt, ends the program and its descendants.

    Args:
        keeps_session: do not start a session too: the program needs to know which terminal it belongs to.
        options: those of `subprocess.Popen`.

    Raises:
        OSError: it cannot be started.
    """
    with sigint_blocked() as mask:
        grouping: dict[str, Any] = {"process_group": 0} if keeps_session else {"start_new_session": True}
        with subprocess.Popen(argv, **grouping, **options) as process:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # raises an interrupt that came meanwhile
                yield process
            except BaseException:
                stop(process)
                raise


@contextmanager
def sigint_blocked() -> Iterator[set[int | signal.Signals]]:
    """Block SIGINT in this thread, and in the programs and threads that begin within the block; the mask before it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def run(
    argv: Sequence[str], *, seconds: float | None = None, keeps_session: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Run a program without standard input, and return its output; see `started`.

    Raises:
        OSError: it cannot be started. subprocess.TimeoutExpired: it was ended after `seconds`.
    """
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started(argv, keeps_session=keeps_session, **pipes) as process:
        out, err = process.communicate(timeout=seconds)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a program and its descendants, giving it time to remove its lock files."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
