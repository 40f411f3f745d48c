"""Inserts with the niceness of the children: those who write to the store come first."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from workbench.analytics.bulk.child import NICENESS

NICEST = 19

T = TypeVar("T")


def run_nicely(work: Callable[[], T]) -> T:
    """Run a function in a thread that yields to all others of this process, and wait for it.

    A thread cannot take its niceness back, and those that it starts inherit it. So it is used for nothing else.
    """
    with ThreadPoolExecutor(1, "workbench-load", _be_nice) as executor:
        return executor.submit(work).result()


def _be_nice() -> None:
    if sys.platform != "linux":  # elsewhere, a thread has no niceness of its own
        return
    thread = threading.get_native_id()
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, thread, min(os.getpriority(os.PRIO_PROCESS, thread) + NICENESS, NICEST))
