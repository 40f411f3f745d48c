"""`wb.progress`: a function that runs for a tool reports how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from workbench.errors import WorkbenchError

PAUSE_SECONDS = 0.1

Report = tuple[float, float | None, str | None]
_REPORTS: ContextVar[CallReports | None] = ContextVar("workbench_tool_reports", default=None)


class CallReports:
    """The reports of one call, as many as its caller can follow. Made on a loop, written to in any thread.

    Args:
        send: sends one.
        pause: seconds between two reports; of those in between, the last is sent.
    """

    def __init__(self, send: Callable[[Report], Awaitable[object]], pause: float = PAUSE_SECONDS) -> None:
        self._send = send
        self._pause = pause
        self._last: Report | None = None
        self._loop = asyncio.get_running_loop()
        self._sending = asyncio.create_task(self._run())
        self._news = asyncio.Event()

    def write(self, report: Report) -> None:
        """Send a report soon, unless another follows."""
        is_first, self._last = self._last is None, report
        if is_first:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._news.set)

    def close(self) -> None:
        """Send no more."""
        self._sending.cancel()

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            report, self._last = self._last, None
            if report is not None:
                with suppress(WorkbenchError):  # the call goes on without
                    await self._send(report)
            await asyncio.sleep(self._pause)


@contextmanager
def reporting(send: Callable[[Report], Awaitable[object]]) -> Iterator[None]:
    """Within the block, and in functions that are started from it, `progress` reports for one call."""
    reports = CallReports(send)
    token = _REPORTS.set(reports)
    try:
        yield
    finally:
        _REPORTS.reset(token)
        reports.close()


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Report how far the function is that runs for a tool: `done` of `total`, with a text.

    Elsewhere it does nothing, so that the function can be called as usual, too.
    """
    reports = _REPORTS.get()
    if reports is not None:
        reports.write((done, total, message))
