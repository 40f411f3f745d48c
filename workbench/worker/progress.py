"""The output of a command: all of it goes to the log file, and to the task in a progress note a second; and the calls
of tools that its program tells of."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from workbench.drivers.fit import OWN_SERVER
from workbench.drivers.stream import ToolEnd, ToolStart
from workbench.errors import BadInput, WorkbenchError
from workbench.model import uuid7

NOTE_LIMIT = 9_000
"""Characters of a note, which fits into the smallest request that the settings permit."""
NOTE_SECONDS = 1.0
CALLS_LIMIT = 900
"""Events of calls that are sent at once; more of a second are left out."""
CALL_BYTES = 500
"""Bytes of a request for each of them, besides its arguments or its result."""
CALLS_SIZE = 400_000
"""Characters of their arguments and results that are sent at once."""
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


class CallReporter:
    """Collects the calls of tools that a program tells of, and sends them, at most once a second.

    Args:
        send: sends beginnings and ends, as many at once as fit into a request. When it fails, beginnings are dropped,
            as the notes tell of them, too; ends are sent again, without results.
        frame_bytes: of a request.
    """

    def __init__(
        self,
        send: Callable[[list[dict[str, Any]], list[dict[str, Any]]], Awaitable[object]],
        frame_bytes: int = 1_048_576,
    ) -> None:
        self._send = send
        self._most_events = min(CALLS_LIMIT, frame_bytes // 2 // CALL_BYTES)
        self._most_size = min(CALLS_SIZE, frame_bytes // 3)
        self._started: list[dict[str, Any]] = []
        self._ended: list[dict[str, Any]] = []
        self._ids: dict[str, str] = {}
        self._left_out = 0
        self._size = 0

    def _fitting(self, value: Any) -> Any:
        """A value, unless there is too much at once."""
        size = len(json.dumps(value))
        if self._size + size > self._most_size:
            return "[too much at once to keep]"
        self._size += size
        return value

    def add(self, call: ToolStart | ToolEnd) -> None:
        """Take the beginning or the end of a call; those of Workbench's own server it has recorded itself."""
        if len(self._started) + len(self._ended) >= self._most_events:
            self._left_out += 1
        elif isinstance(call, ToolStart) and call.server != OWN_SERVER and call.tool:
            self._ids[call.call] = call_id = str(uuid7(time.time_ns() // 1_000))
            server = call.server and call.server[:100]
            fields = {
                "call_id": call_id,
                "tool": call.tool[:200],
                "server": server,
                "arguments": self._fitting(call.arguments),
            }
            self._started.append(fields)
        elif isinstance(call, ToolEnd) and (known := self._ids.pop(call.call, None)):
            state = "failed" if call.is_error else "completed"
            self._ended.append({"call_id": known, "result": self._fitting(call.result), "state": state})

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Callable[[ToolStart | ToolEnd], None]]:
        """Send calls while the block lasts; those that have not ended with it are interrupted."""
        sender = asyncio.create_task(self._send_again_and_again())
        try:
            yield self.add
        finally:
            sender.cancel()
            self._ended += [{"call_id": one, "result": None, "state": "interrupted"} for one in self._ids.values()]
            await self._flush()

    async def _send_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            await self._flush()

    async def _flush(self) -> None:
        started, ended, left_out = self._started, self._ended, self._left_out
        self._started, self._ended, self._left_out, self._size = [], [], 0, 0
        if left_out:
            log.warning("%s events of calls are left out: there are too many at once", left_out)
        while started or ended:
            most = self._most_events - len(started)
            now, ended = ended[:most], ended[most:]
            try:
                await self._send(started, now)
            except Exception as error:  # an attempt does not fail because a record does
                log.warning(
                    "calls of tools were not recorded: %s", error, exc_info=not isinstance(error, WorkbenchError)
                )
                again = [] if isinstance(error, BadInput) else now
                self._ended = [*({**end, "result": None} for end in again), *ended, *self._ended]
                return
            started = []
