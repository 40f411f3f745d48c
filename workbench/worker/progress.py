"""The output of a command: all of it goes to the log file, and to the task in a progress note a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from workbench.errors import WorkbenchError

NOTE_LIMIT = 9_000
NOTE_SECONDS = 1.0
LOG_LIMIT = 20_000_000
"""Characters of one attempt that are kept in the log file: a command must not fill the disk."""

log = logging.getLogger(__name__)


class ProgressReporter:
    """Collects lines of output, and sends those since the last note, as far as they fit into one.

    Args:
        send: sends a note. When it fails, the lines go into the next note.
    """

    def __init__(self, send: Callable[[str], Awaitable[object]]) -> None:
        self._send = send
        self._lines: list[str] = []
        self._size = 0
        self._logged = 0

    def add(self, line: str) -> None:
        """Take a line of output."""
        if self._logged <= LOG_LIMIT:
            self._logged += len(line) + 1
            log.info("| %s", line if self._logged <= LOG_LIMIT else "[what follows is not kept]")
        if self._size <= NOTE_LIMIT:
            self._lines.append(line)
            self._size += len(line) + 1

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Callable[[str], None]]:
        """Send notes while the block lasts. All lines have been sent when it has ended, unless it was cancelled."""
        ended = asyncio.Event()
        sender = asyncio.create_task(self._send_until(ended))
        try:
            yield self.add
            ended.set()
            await sender
        finally:
            sender.cancel()

    async def _send_until(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), NOTE_SECONDS)
            await self._flush()
        await self._flush()  # what was added while the last note was being sent

    async def _flush(self) -> None:
        if not self._lines:
            return
        lines, self._lines, self._size = self._lines, [], 0
        try:
            await self._send("\n".join(lines)[:NOTE_LIMIT])
        except Exception as error:  # an attempt does not fail because a note does
            log.warning("a progress note was not sent: %s", error, exc_info=not isinstance(error, WorkbenchError))
            self._lines = [*lines, *self._lines]
            self._size = sum(len(line) + 1 for line in self._lines)
