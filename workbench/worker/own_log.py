"""The log of a worker whose server is on another machine: sent there, where people read it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from workbench.client import HttpClient
from workbench.client.connection import Operations
from workbench.errors import BadInput, NotFound, Refused, Unauthenticated, WorkbenchError
from workbench.worker.startup import WorkerConfig

SECONDS = 1.0
"""How often lines are sent."""
LAST_SECONDS = 2.0
"""How long a worker that ends sends its last lines."""
FORMAT = "%(asctime)s %(levelname)s %(message)s"
MOST = 5_000_000
"""Characters that wait for a link that is cut; older ones go."""
PIECE = 50_000
"""Characters that are sent at once."""
CHARACTER = 7
"""Bytes of a request for each of them, at most."""
_FOR_GOOD = (BadInput, NotFound, Refused, Unauthenticated)
"""The server takes no log of this worker."""


class LogSender(logging.Handler):
    """Takes lines of the log, and sends them in their order, each once; what cannot be sent waits.

    Args:
        call: runs operations as the worker, without repeating them.
        frame_bytes: of a request.
    """

    def __init__(self, call: Operations, frame_bytes: int = 1_048_576) -> None:
        super().__init__()
        self._most = min(PIECE, frame_bytes // CHARACTER)
        self._call = call
        self._lines: deque[str] = deque()
        self._waiting = 0
        self._lost = 0
        self._piece = ""
        self._offset = 0
        """How many bytes the server has."""
        self._is_refused = False

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line; the oldest go if there are too many."""
        line = self.format(record) + "\n"
        self._lines.append(line)
        self._waiting += len(line)
        while self._waiting > MOST and len(self._lines) > 1:
            self._waiting -= len(self._lines.popleft())
            self._lost += 1

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        """Send while the block lasts, and what is left after it, within `LAST_SECONDS`."""
        sender = asyncio.create_task(self._send_again_and_again())
        try:
            yield
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
            with suppress(WorkbenchError, TimeoutError):
                await asyncio.wait_for(self._send(), LAST_SECONDS)

    async def _send_again_and_again(self) -> None:
        while not self._is_refused:
            await asyncio.sleep(SECONDS)
            try:
                await self._send()
            except _FOR_GOOD as error:
                self._is_refused = True
                logging.warning("the log stays on this machine: %s: %s", error.code, error.message)
            except WorkbenchError:  # the link is cut: what waits for it is told by others
                continue

    async def _send(self) -> None:
        while not self._is_refused and (piece := self._next()):
            sent = await self._call("send_process_log", offset=self._offset, text=piece)
            self._offset = sent["received"]
            if sent["taken"]:
                self._piece = ""

    def _next(self) -> str:
        """The piece that is to be sent, again if it was not taken."""
        self.acquire()
        try:
            if not self._piece and self._lost:
                self._piece, self._lost = f"[{self._lost} lines are left out: the link was cut]\n", 0
            elif not self._piece:
                while self._lines and len(self._piece) + len(self._lines[0]) <= self._most:
                    self._piece += self._lines.popleft()
                if not self._piece and self._lines:
                    self._piece, self._lines[0] = self._lines[0][: self._most], self._lines[0][self._most :]
                self._waiting -= len(self._piece)
        finally:
            self.release()
        return self._piece


@asynccontextmanager
async def sending(config: WorkerConfig) -> AsyncIterator[None]:
    """Send what the process logs while the block lasts."""
    async with HttpClient(config.url, config.token, certificate=config.certificate) as client:
        root, sender = logging.getLogger(), LogSender(client.call, config.frame_bytes)
        sender.setFormatter(logging.Formatter(FORMAT))
        root.addHandler(sender)
        try:
            async with sender.sending():
                yield
        finally:
            root.removeHandler(sender)
