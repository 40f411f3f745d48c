"""The calls of tools that this process runs or asks about, by their ids, so that each can be ended alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from cachetools import LRUCache

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.model import SECOND
from workbench.process.reference import has_ended, process_identity
from workbench.rules.token_bucket import TokenBucket

REFUSALS = 100
"""Refused calls of one caller that may leave records at once."""
REFUSAL_SECONDS = 6
"""After so long another one may."""
CALLERS = 10_000
"""Callers whose refusals are counted, the latest."""


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


@dataclass
class _Refusals:
    """The refused calls of one caller. `left_out`: those without a record since the last one with it."""

    bucket: TokenBucket
    left_out: int = 0


class RunningCalls:
    """The calls of this process. Use it on the loop that runs them."""

    def __init__(self) -> None:
        self.runner = process_identity()
        """Identifies this process, for `is_lost` of others."""
        self.questions: dict[int, asyncio.Future[Any]] = {}
        """The answers that calls of this process wait for, by the approvals that ask the person."""
        self._calls: dict[str, RunningCall] = {}
        self._refusals: LRUCache[str, _Refusals] = LRUCache(CALLERS)

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

    def note_refusal(self, caller: str, now: int) -> int | None:
        """Note that a call was refused. How many of this caller's left no record since the last that did; None if this
        one leaves none, either: then what somebody sends again and again does not fill the store."""
        seconds = now / SECOND
        refusals = self._refusals.get(caller)
        if refusals is None:
            refusals = self._refusals[caller] = _Refusals(
                TokenBucket(1 / REFUSAL_SECONDS, REFUSALS * REFUSAL_SECONDS, seconds)
            )
        if not refusals.bucket.take(seconds):
            refusals.left_out += 1
            return None
        left_out, refusals.left_out = refusals.left_out, 0
        return left_out

    def interrupt(self) -> None:
        """End all calls, because the servers stop."""
        for call in list(self._calls.values()):
            call.end(Unavailable("TOOL_INTERRUPTED", "The servers were stopped while the tool was called."))

    def is_lost(self, call_id: str, runner: str) -> bool:
        """Whether the process that ran a call has ended, or forgotten it; one of another machine is judged there."""
        if runner == self.runner:
            return call_id not in self._calls
        return "/" not in runner or has_ended(runner) is True  # names without a machine are older than this process
