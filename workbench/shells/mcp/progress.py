"""Progress of calls that wait, for clients that ask for it; many of them then extend their own time limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from workbench.shells.mcp.backend import Context

SECONDS_BETWEEN_REPORTS = 5.0


@asynccontextmanager
async def reported(ctx: Context) -> AsyncIterator[None]:
    """Report at once and then regularly how many seconds the call has waited, if its client sent a progress token."""
    if ctx.meta is None or "progress_token" not in ctx.meta:
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
