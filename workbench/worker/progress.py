"""What a command says, on its way into the log file and, a note a second, to the task."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from workbench.errors import WorkbenchError

NOTE_LIMIT = 9_000
NOTE_SECONDS = 1.0
LOG_LIMIT = 20_000_000
"""Characters of one attempt that are kept in the log file: a command must not fill the disk."""

log = logging.getLogger(__name__)


class ProgressReporter:
    """Takes lines; sends what was said since the last time, as far as it fits into a note.

    Args:
        send: tells the server; errors of its are the concern of whoever holds the lease.
    """

    def __init__(self, send: Callable[[str], Awaitable[object]]) -> None:
        self._send = send
        self._lines: list[str] = []
        self._size = 0
        self._logged = 0

    def hear(self, line: str) -> None:
        """Take a line of output."""
        if self._logged <= LOG_LIMIT:
            self._logged += len(line) + 1
            log.info("| %s", line if self._logged <= LOG_LIMIT else "[what follows is not kept]")
        if self._size <= NOTE_LIMIT:
            self._lines.append(line)
            self._size += len(line) + 1

    @contextlib.asynccontextmanager
    async def sending(self) -> AsyncIterator[Callable[[str], None]]:
        """Send notes as long as the block lasts, and the last one at its end."""
        regularly = asyncio.create_task(self._regularly())
        try:
            yield self.hear
        finally:
            regularly.cancel()
        await self._flush()

    async def _regularly(self) -> None:
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            await self._flush()

    async def _flush(self) -> None:
        if self._lines:
            text = "\n".join(self._lines)[:NOTE_LIMIT]
            self._lines, self._size = [], 0
            with contextlib.suppress(WorkbenchError):
                await self._send(text)
