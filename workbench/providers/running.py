"""The answers that this process makes, and the readers that wait for their frames."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

SETTLE_SECONDS = 5.0
"""How long the end of an answer may take that is interrupted by the end of the server."""


class AnswerEnding(StrEnum):
    """Why an answer is ended from outside: the operator stops it, the server stops, or its conversation is deleted."""

    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    DISCARDED = "discarded"


@dataclass(eq=False)
class RunningAnswer:
    """An answer that is being made.

    Args:
        ending: why it is ended from outside; None: it goes on, or ends by itself.
        is_begun: whether its task has run; one that has not would never run if it were cancelled.
    """

    conversation_id: str
    turn_id: str
    task: asyncio.Task[None] | None = None
    ending: AnswerEnding | None = None
    is_begun: bool = False

    def end(self, ending: AnswerEnding) -> None:
        """Stop making it. Its task records how it ended."""
        if self.ending is None:
            self.ending = ending
            self.cancel()

    def cancel(self) -> None:
        """Cancel what the task is doing, unless it has not begun."""
        if self.task is not None and self.is_begun:
            self.task.cancel()


@dataclass(eq=False)
class RunningAnswers:
    """Each answer is a task of its own, which belongs to no connection. Use it from one loop."""

    _answers: dict[str, RunningAnswer] = field(default_factory=dict)
    _here: dict[str, int] = field(default_factory=dict)
    _readers: defaultdict[str, set[asyncio.Event]] = field(default_factory=lambda: defaultdict(set))

    def start(self, running: RunningAnswer, work: Coroutine[Any, Any, None]) -> None:
        """Make an answer in a task. The coroutine handles all its errors, and looks at `ending` when it begins."""
        running.task = asyncio.create_task(work, name=f"answer {running.turn_id}")
        self._answers[running.turn_id] = running
        running.task.add_done_callback(lambda task: self._answers.pop(running.turn_id, None))
        held = ExitStack()
        held.enter_context(self.beginning(running.conversation_id))
        running.task.add_done_callback(lambda task: held.close())

    @contextmanager
    def beginning(self, conversation_id: str) -> Iterator[None]:
        """Begin an answer of a conversation within the block: its row is written, then it is started."""
        self._here[conversation_id] = self._here.get(conversation_id, 0) + 1
        try:
            yield
        finally:
            self._here[conversation_id] -= 1
            if not self._here[conversation_id]:
                del self._here[conversation_id]

    def is_here(self, conversation_id: str) -> bool:
        """Whether this process makes, or begins, an answer of a conversation; callable from any thread."""
        return conversation_id in self._here

    async def stop(self, conversation_id: str) -> None:
        """Stop the answer of a conversation, if it is being made here, and wait until that is recorded."""
        await self._end(conversation_id, AnswerEnding.STOPPED)

    async def discard(self, conversation_id: str) -> None:
        """Stop the answer of a conversation that was deleted, and wake its readers."""
        self.wake(conversation_id)
        await self._end(conversation_id, AnswerEnding.DISCARDED)

    async def interrupt_all(self) -> None:
        """Stop all answers, because the server stops, and wait until that is recorded."""
        for running in list(self._answers.values()):
            running.end(AnswerEnding.INTERRUPTED)
        if tasks := [running.task for running in self._answers.values() if running.task]:
            await asyncio.wait(tasks, timeout=SETTLE_SECONDS)

    @contextmanager
    def news(self, conversation_id: str) -> Iterator[asyncio.Event]:
        """An event that is set when a conversation has new frames, or is deleted."""
        news = asyncio.Event()
        self._readers[conversation_id].add(news)
        try:
            yield news
        finally:
            self._readers[conversation_id].discard(news)
            if not self._readers[conversation_id]:
                del self._readers[conversation_id]

    def wake(self, conversation_id: str) -> None:
        """Wake the readers of a conversation."""
        for news in self._readers.get(conversation_id, ()):
            news.set()

    async def _end(self, conversation_id: str, ending: AnswerEnding) -> None:
        found = [one for one in self._answers.values() if one.conversation_id == conversation_id]
        for running in found:
            running.end(ending)
        if tasks := [running.task for running in found if running.task]:
            await asyncio.wait(tasks)
