"""The messages to an agent while an attempt at a task runs: from the server to its program, and their receipts back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from workbench.drivers import Told
from workbench.errors import Unavailable, WorkbenchError
from workbench.worker.listening import Listener
from workbench.worker.previous import message_text

WAIT_SECONDS = 20.0
"""How long one call waits for a message."""
PAUSE_SECONDS = 0.5
"""The pause after a call that failed, and while the agent itself reads its messages."""

Deliver = Callable[..., Awaitable[Sequence[Mapping[str, Any]]]]
"""`await deliver(after=0, taken=[], wait_seconds=0)`: the messages that the agent has not seen, after one with an id;
those that its program has taken are seen."""

log = logging.getLogger(__name__)


class Mailbox:
    """Where an agent gets what it is told.

    Args:
        deliver: the server's operation, for the attempt.
    """

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._got: set[int] = set()
        self._taken: list[int] = []
        self._has_taken = asyncio.Event()

    def note_taken(self, message: int) -> None:
        """Note that the agent has a message: it has then been seen."""
        self._got.add(message)
        self._taken.append(message)
        self._has_taken.set()

    async def left(self) -> list[Told]:
        """The messages that the agent has not seen."""
        try:
            return self._new(await self._send_receipts())
        except WorkbenchError as error:
            log.warning("messages are not known: %s", error)
            return []

    @asynccontextmanager
    async def serving(self, listener: Listener) -> AsyncIterator[asyncio.Event]:
        """Tell a run of the program what comes, while the block lasts; yields an event that is set for each message."""
        news = asyncio.Event()
        tasks = [asyncio.create_task(self._fetch(listener, news)), asyncio.create_task(self._report())]
        try:
            yield news
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._taken:
                with suppress(WorkbenchError):
                    await self._send_receipts()

    async def _fetch(self, listener: Listener, news: asyncio.Event) -> None:
        last = 0
        while True:
            try:
                messages = await self._deliver(after=last, wait_seconds=WAIT_SECONDS)
            except Unavailable:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            except WorkbenchError as error:
                if error.code != "LEASE_LOST":
                    log.warning("messages are not known: %s", error)
                return
            if messages and listener.reads_messages:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            last = max((message["id"] for message in messages), default=last)
            for message in self._new(messages):
                listener.tell(message)
                news.set()

    async def _report(self) -> None:
        while True:
            await self._has_taken.wait()
            self._has_taken.clear()
            try:
                await self._send_receipts()
            except WorkbenchError as error:
                log.warning("the receipts of messages were not sent: %s", error)

    async def _send_receipts(self) -> Sequence[Mapping[str, Any]]:
        taken, self._taken = self._taken, []
        try:
            return await self._deliver(taken=taken)
        except BaseException:
            self._taken = [*taken, *self._taken]
            raise

    def _new(self, messages: Sequence[Mapping[str, Any]]) -> list[Told]:
        """Those that the agent has not got, although the server may not know it yet."""
        new = [message for message in messages if message["id"] not in self._got]
        return [Told(message["id"], message_text(message), message["interrupts"]) for message in new]
