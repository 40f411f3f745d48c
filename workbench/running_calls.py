"""The calls of tools that this process runs or asks about, by their ids, so that each can be ended alone."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import psutil

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.process.reference import ProcessRef, is_running


class RunningCall:
    """A call, ended by cancelling the task that runs it. A context manager, entered in that task."""

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancellations = task.cancelling()
        self._reason: WorkbenchError | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether this process ended it because the servers stop."""
        return isinstance(self._reason, Unavailable)

    def end(self, reason: WorkbenchError) -> None:
        """Cancel it. Who waits for it gets the reason."""
        if self._reason is None:
            self._reason = reason
            self._task.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, raised: type[BaseException] | None, *_: object) -> None:
        if self._reason is None:
            return
        is_only_this = self._task.uncancel() <= self._cancellations
        if is_only_this and raised is not None and issubclass(raised, asyncio.CancelledError):
            raise self._reason from None


class RunningCalls:
    """The calls of this process. Use it on the loop that runs them."""

    def __init__(self) -> None:
        process = psutil.Process()
        self.runner = f"{process.pid}:{process.create_time()}"
        """Identifies this process, for `is_lost` of others."""
        self._calls: dict[str, RunningCall] = {}

    @contextmanager
    def running(self, call_id: str) -> Iterator[RunningCall]:
        """Have a call known within the block, in the task that runs it."""
        with RunningCall() as call:
            self._calls[call_id] = call
            try:
                yield call
            finally:
                del self._calls[call_id]

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._calls

    def cancel(self, call_id: str, by: str) -> bool:
        """Cancel a call; False if this process does not run it."""
        call = self._calls.get(call_id)
        if call is not None:
            call.end(Conflict("TOOL_CANCELLED", f"The call was cancelled by {by}."))
        return call is not None

    def interrupt(self) -> None:
        """End all calls, because the servers stop."""
        for call in list(self._calls.values()):
            call.end(Unavailable("TOOL_INTERRUPTED", "The servers were stopped while the tool was called."))

    def is_lost(self, call_id: str, runner: str) -> bool:
        """Whether the process that ran a call has ended, or forgotten it."""
        return call_id not in self._calls if runner == self.runner else not _is_alive(runner)


def _is_alive(runner: str) -> bool:
    pid, _, started = runner.partition(":")
    try:
        process = ProcessRef(int(pid), float(started or math.nan)).find()
    except ValueError:
        return False
    return process is not None and is_running(process)
