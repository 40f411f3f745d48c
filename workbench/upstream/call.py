"""One call of a tool of a server: its deadline, the progress that it reports, and the questions that it asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
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
        unanswered: why no person has answered, for who called the tool; empty: one has.
    """

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] | None = None
    unanswered: str = ""


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """A question of a server to the person behind a call.

    Args:
        schema: of the answer, a flat object.
        url: where the person is to do something instead of answering; empty: nowhere.
    """

    message: str
    schema: Mapping[str, Any]
    url: str = ""


Ask = Callable[[ServerQuestion], Awaitable[ElicitationReply]]
"""Asks the person."""
MOST_QUESTIONS = 20
"""Of one call."""
_NOBODY = "nobody can be asked for this caller"
_WHOSE = "it cannot be told which of several calls it belongs to"
_TOO_MANY = f"a call may ask {MOST_QUESTIONS} questions"


def not_asked(reason: str) -> ElicitationReply:
    """What the protocol has for a question that nobody was asked; `decline` is a person's word."""
    return ElicitationReply("cancel", unanswered=reason)


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
        self._questions = self._asked = 0
        self.unanswered: list[str] = []
        """The questions that no person has answered, and why: sentences for the caller."""
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

    async def ask(self, question: ServerQuestion) -> ElicitationReply:
        """Ask the person a question of the server; without a person, it is cancelled, and the caller told."""
        self._asked += 1
        self._questions += 1
        self._extend()
        try:
            if self._ask is None or self._asked > MOST_QUESTIONS:
                reply = not_asked(_NOBODY if self._ask is None else _TOO_MANY)
            else:
                reply = await self._ask(question)
        finally:
            self._questions -= 1
            self._extend()
        self.note(question, reply)
        return reply

    def note(self, question: ServerQuestion, reply: ElicitationReply) -> None:
        """Note a question that no person has answered, for the caller."""
        if reply.unanswered and len(self.unanswered) < MOST_QUESTIONS:
            said = f"The server asked “{question.message}” and was told that this was cancelled: {reply.unanswered}."
            self.unanswered.append(said)

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


def whose(question: ServerQuestion, calls: Iterable[UpstreamCall]) -> ElicitationReply:
    """The reply to a question that could be of several calls, each of which is told."""
    reply = not_asked(_WHOSE)
    for call in calls:
        call.note(question, reply)
    return reply


_CURRENT: ContextVar[UpstreamCall | None] = ContextVar("the call that this task belongs to", default=None)


def current() -> UpstreamCall | None:
    """The call that the running task belongs to, if that is known.

    The client of the MCP package handles questions in the context of their call, except for those of older servers on
    standard input and output, which do not name their call.
    """
    return _CURRENT.get()
