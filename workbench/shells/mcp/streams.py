"""What the streams of clients have in common: their agent is connected, and they end with its token."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.model import Level
from workbench.ops import Caller
from workbench.shells.gate import revoked

log = logging.getLogger(__name__)


def present(workbench: Workbench, caller: Caller, peer: Any) -> AbstractAsyncContextManager[None]:
    """Record an admitted agent as connected within the block.

    Args:
        peer: the host and port of its client.
    """
    if caller.agent is None or caller.level is Level.ANONYMOUS:
        return nullcontext()
    host, port = peer
    return workbench.connected(caller, "mcp", f"{host}:{port}")


async def ended_for(workbench: Workbench, caller: Caller) -> None:
    """Wait until a caller's streams have to end: its token is invalid, or that can no longer be watched."""
    try:
        await revoked(workbench, caller)
    except WorkbenchError:  # the store failed: the client can connect again
        log.warning("the stream of %s ends, because it can no longer be watched", caller.name, exc_info=True)


@asynccontextmanager
async def alongside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do some work beside the block, and cancel it when the block ends; its errors are logged."""
    tasks = [asyncio.create_task(job) for job in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                log.error("work beside a stream failed", exc_info=outcome)
