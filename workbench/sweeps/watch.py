"""Ends kernels that exceed a limit or are cancelled, together with everything they started.

One thread watches all kernels of a process. A kernel is ended with SIGKILL, because code that ignores signals must not
hold a sweep up; why it was ended is kept, since papermill only sees that the kernel died.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

import psutil

from workbench.errors import Unavailable
from workbench.process import ProcessRef, ProcessTree, marked, new_mark
from workbench.process.marks import marks_of
from workbench.process.tree import running_processes

TICK_SECONDS = 0.1
GRACE_SECONDS = 0.6
"""How long code may take to end after it was interrupted."""

log = logging.getLogger(__name__)


class Reason(Enum):
    """Why a kernel was ended."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    CANCELLED = "cancelled"


@dataclass(eq=False)
class Kernel:
    """A watched kernel, from before its start until all its processes have ended.

    Args:
        seconds: how long it may run, from its start; None: any time.
        memory: bytes that it and its descendants may use; None: any.
        clock: a monotonic clock, in seconds.
    """

    seconds: float | None = None
    memory: int | None = None
    clock: Callable[[], float] = time.monotonic
    mark: str = field(default_factory=new_mark)
    reason: Reason | None = None
    """Why it was ended; None: it was not, or ended by itself."""
    _ref: ProcessRef | None = None
    _tree: ProcessTree | None = None
    _started: float = 0.0
    _asked: float | None = None

    def __enter__(self) -> None:
        """Nothing of it is left at the end of the block."""

    def __exit__(self, *_: object) -> None:
        self.clean()

    def environment(self, base: Mapping[str, str], *marks: str) -> dict[str, str]:
        """The environment to start it with: a base, and the marks that its descendants inherit."""
        return marked(base, ":".join((*marks, self.mark)))

    def started(self, pid: int) -> None:
        """Note that it runs now, as this process."""
        self._ref = ProcessRef.of_new(pid, self.mark)
        self._tree = ProcessTree(self._ref)
        self._started = self.clock()
        if self.reason is not None:  # it was cancelled before
            self.end(self.reason)

    def ask(self) -> None:
        """Interrupt its code, as Ctrl-C does; code that does not end soon is killed."""
        if self.reason is None:
            self.reason, self._asked = Reason.CANCELLED, self.clock()
            with suppress(psutil.Error):
                if self._ref is not None and (process := self._ref.find()):
                    process.send_signal(signal.SIGINT)

    def end(self, reason: Reason) -> None:
        """End it with everything it started."""
        self.reason = self.reason or reason
        self.clean()

    def check(self) -> None:
        """End it if it has exceeded a limit, or was interrupted and has not ended."""
        if self._ref is None:
            return
        now = self.clock()
        if self._asked is not None:
            if now - self._asked > GRACE_SECONDS:
                self._asked = None
                self.clean()
        elif self.reason is not None:
            return
        elif self.seconds is not None and now - self._started > self.seconds:
            self.end(Reason.TIMEOUT)
        elif self.memory is not None and memory_of(self._ref) > self.memory:
            self.end(Reason.MEMORY)

    def clean(self) -> None:
        """End whatever of it runs."""
        if self._tree is None:
            return
        try:
            self._tree.kill()
        except Unavailable as error:  # said here, because nobody waits for it
            log.warning("%s", error.message)


class Watch:
    """Watches kernels in a thread of its own while it is entered.

    Args:
        is_wanted: called often in that thread; when it returns False, all runs are cancelled.
    """

    def __init__(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self._is_wanted = is_wanted
        self._kernels: set[Kernel] = set()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._cancelled = False
        self._thread = threading.Thread(target=self._run, name="workbench-sweep-watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def add(self, kernel: Kernel) -> None:
        """Watch a kernel; after a cancellation, it is cancelled at once."""
        with self._lock:
            self._kernels.add(kernel)
            cancelled = self._cancelled
        if cancelled:
            kernel.end(Reason.CANCELLED)

    def remove(self, kernel: Kernel) -> None:
        """Stop watching a kernel."""
        with self._lock:
            self._kernels.discard(kernel)

    @property
    def cancelled(self) -> bool:
        """Whether all kernels were cancelled."""
        return self._cancelled

    def ask_all(self) -> None:
        """Interrupt all kernels, and cancel later ones; see `Kernel.ask`."""
        for kernel in self._cancel():
            kernel.ask()

    def end_all(self) -> None:
        """End all kernels at once, and cancel later ones."""
        for kernel in self._cancel():
            kernel.end(Reason.CANCELLED)

    def _cancel(self) -> list[Kernel]:
        with self._lock:
            self._cancelled = True
            return [*self._kernels]

    def _run(self) -> None:
        while not self._done.wait(TICK_SECONDS):
            if not self._cancelled and not self._is_wanted():
                self.ask_all()
            with self._lock:
                kernels = [*self._kernels]
            for kernel in kernels:
                try:
                    kernel.check()
                except Exception:  # the other kernels are watched all the same
                    log.exception("a kernel could not be watched")


def memory_of(ref: ProcessRef) -> int:
    """Bytes of memory of a process and its descendants."""
    process = ref.find()
    if process is None:
        return 0
    total = 0
    with suppress(psutil.Error):
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                total += member.memory_info().rss
    return total


def end_marked(mark: str) -> int:
    """End the processes that a killed sweep or try left; their number."""
    processes = [
        row.process for row in running_processes() if row.process.pid != os.getpid() and mark in marks_of(row.process)
    ]
    for process in processes:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=5)
    return len(processes)
