"""One call of a tool of a server: its deadline, the progress that it reports, and the questions that it asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from workbench.present.inert import inert_line
from workbench.rules.tools.surroundings import ProgressReceiver

REPORT_SECONDS = 0.1
"""The least time between two reports that are passed on; the latest replaces those in between."""
LONGEST_MESSAGE = 500
LONGEST_SECONDS = 3_600.0
"""The most that a call may take, however much progress it reports."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ElicitationReply:
    """A person's answer to a question of a tool.

    Args:
        content: the fields filled in, if it was accepted.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] | None = None


Ask = Callable[[str, Mapping[str, Any]], Awaitable[ElicitationReply]]
"""`await ask(message, schema)`: ask the person; the schema is that of a flat object."""
DECLINED = ElicitationReply("decline")


class UpstreamCall:
    """A call under way.

    Args:
        answer_seconds: how long it may take; each report of progress begins that time anew, and a question suspends it.
    """

    def __init__(self, answer_seconds: float, progress: ProgressReceiver | None, ask: Ask | None) -> None:
        self._answer_seconds = answer_seconds
        self._progress = progress
        self._ask = ask
        self._clock = asyncio.get_running_loop().time
        self._latest_end = self._clock() + LONGEST_SECONDS
        self._deadline: asyncio.Timeout | None = None
        self._questions = 0
        self._latest: tuple[float, float | None, str | None] | None = None
        self._relay: asyncio.Task[None] | None = None
        self._passing_on = False

    @asynccontextmanager
    async def under_way(self) -> AsyncIterator[None]:
        """Enforce the deadline and pass progress on within the block; pass the latest report on at its end.

        Raises:
            TimeoutError: the deadline has passed.
        """
        token = _CURRENT.set(self)
        try:
            async with asyncio.timeout(self._answer_seconds) as self._deadline:
                yield
            if not self._passing_on:
                await self._pass_on()
        finally:
            self._deadline = None
            _CURRENT.reset(token)
            if self._relay is not None:
                self._relay.cancel()

    async def note_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Note progress that the server reports."""
        self._latest = (progress, total, inert_line(message[:LONGEST_MESSAGE]) if message else None)
        self._extend()
        if self._relay is None and self._deadline is not None:
            self._relay = asyncio.create_task(self._pass_on_all())

    async def ask(self, message: str, schema: Mapping[str, Any]) -> ElicitationReply:
        """Ask the person a question of the server; without a person, it is declined."""
        if self._ask is None:
            return DECLINED
        self._questions += 1
        self._extend()
        try:
            return await self._ask(message, schema)
        finally:
            self._questions -= 1
            self._extend()

    def _extend(self) -> None:
        if self._deadline is None or self._deadline.expired():
            return
        seconds = LONGEST_SECONDS if self._questions else self._answer_seconds
        self._deadline.reschedule(min(self._clock() + seconds, self._latest_end))

    async def _pass_on_all(self) -> None:
        """Pass reports on until there is no new one."""
        while self._latest is not None:
            await self._pass_on()
            await asyncio.sleep(REPORT_SECONDS)
        self._relay = None

    async def _pass_on(self) -> None:
        report, self._latest = self._latest, None
        if report is None or self._progress is None:
            return
        self._passing_on = True
        try:
            await self._progress(*report)
        except Exception:  # the caller's: it does not fail its own call
            log.exception("progress could not be passed on")
        finally:
            self._passing_on = False


_CURRENT: ContextVar[UpstreamCall | None] = ContextVar("the call that this task belongs to", default=None)


def current() -> UpstreamCall | None:
    """The call that the running task belongs to, if that is known.

    The client of the MCP package handles questions in the context of their call, except for those of older servers on
    standard input and output, which do not name their call.
    """
    return _CURRENT.get()
