"""Progress of calls, for clients that ask for it; many of them then extend their own time limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from workbench.shells.mcp.backend import Context

SECONDS_BETWEEN_REPORTS = 5.0
LEAST_SECONDS_BETWEEN_REPORTS = 0.02
STEP = 1e-6
"""How much a report without news adds to the last: clients expect each report to be greater than the one before."""


RUNS = "It is not done yet."


@asynccontextmanager
async def reported(ctx: Context) -> AsyncIterator[None]:
    """Report at once and then regularly how many seconds the call has waited, if its client sent a progress token."""
    if not _is_wanted(ctx):
        yield
        return
    reporting = asyncio.create_task(_report(ctx))
    try:
        yield
    finally:
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)  # none may follow the result


async def _report(ctx: Context) -> None:
    """Report until cancelled. If a report cannot be sent, the reports end; the call itself goes on."""
    clock = asyncio.get_running_loop().time
    began = clock()
    while True:
        waited = clock() - began
        await ctx.session.report_progress(waited, message=f"Waiting for {waited:.0f} s.")
        await asyncio.sleep(SECONDS_BETWEEN_REPORTS)


def _is_wanted(ctx: Context) -> bool:
    return ctx.meta is not None and "progress_token" in ctx.meta


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """How far a tool is."""

    progress: float
    total: float | None = None
    message: str | None = None


class ToolReports:
    """What a tool reports, on its way to the client. Only the newest report is kept, so that neither a tool that
    reports all the time nor a client that does not read delays anything else.
    """

    def __init__(self) -> None:
        self._newest: ToolProgress | None = None
        self._news = asyncio.Event()
        self._state = RUNS

    @property
    def said(self) -> str:
        """The newest report in words, or where the call stands."""
        return (self._newest and self._newest.message) or self._state

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Report; never waits."""
        self._newest = ToolProgress(progress, total, message)
        self._news.set()

    def follow(self, call_id: str, approval_id: int | None) -> None:
        """Report at once that the call waits for a permission, and that it has it; see `Surroundings.follow`."""
        state = RUNS if approval_id is None else f"Waiting for the operator to decide approval {approval_id}."
        if state != self._state:
            self._state = state
            self._news.set()

    @asynccontextmanager
    async def sent_to(self, ctx: Context) -> AsyncIterator[None]:
        """Send the reports with a request, within the block, and now and then that the call is still open."""
        if not _is_wanted(ctx):
            yield
            return
        sender = _Sender(ctx)
        sending = asyncio.create_task(self._send(sender))
        try:
            yield
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        if self._newest is not None:
            await sender.send(self._newest)

    async def _send(self, sender: _Sender) -> None:
        """Send reports until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS_BETWEEN_REPORTS):
                    await self._news.wait()
            self._news.clear()
            report, self._newest = self._newest, None
            if report is None:
                await sender.send_again(self._state)
            else:
                await sender.send(report)
            await asyncio.sleep(LEAST_SECONDS_BETWEEN_REPORTS)


class _Sender:
    """Sends the reports of one request; each is greater than the one before."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._sent: float | None = None
        self._last: ToolProgress | None = None

    async def send(self, report: ToolProgress) -> None:
        """Send a report of the tool, unless it is not further than the last and says the same."""
        last = self._last
        if self._sent is None or report.progress > self._sent:
            self._last = report
            await self._send(report)
        elif last is not None and report.progress == last.progress and report.message != last.message:
            self._last = report
            await self._send(replace(report, progress=self._sent + STEP))

    async def send_again(self, state: str) -> None:
        """Send that the call is still open: with the tool's last report, or else where the call stands."""
        progress = 0 if self._sent is None else self._sent + STEP
        await self._send(replace(self._last or ToolProgress(0, message=state), progress=progress))

    async def _send(self, report: ToolProgress) -> None:
        self._sent = report.progress
        await self._ctx.session.report_progress(report.progress, report.total, report.message)
