"""The MCP endpoint of the servers, which loads the MCP library with the first request to it.

The library takes half a second to import, and many servers never meet an MCP client. So nothing that is imported when
they start may import it. The import runs in a thread, beside the event loop: other requests are answered meanwhile, and
an interrupt of the kernel does not reach it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import Unavailable
from workbench.shells.gate import refuse, server_stopping

if TYPE_CHECKING:
    from workbench.shells.mcp.in_process import McpApplication

log = logging.getLogger(__name__)


class OnDemand:
    """The ASGI application of the MCP endpoint, within `run`: `in_process.Endpoint`, from the first request on.

    Requests that meet while it is loaded wait for the same load. If that fails, they are refused with ``MCP_FAILED``,
    and the next request loads it again.

    Args:
        stopping: set when the servers are about to stop; requests that wait for the load are then refused.
    """

    def __init__(self, workbench: Workbench, stopping: asyncio.Event) -> None:
        self._workbench = workbench
        self._stopping = stopping
        self._endpoint: McpApplication | None = None
        self._opening: asyncio.Future[McpApplication | None]
        """The endpoint that `_holding` opens; None if it cannot."""
        self._holding: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve within the block; once only."""
        try:
            yield
        finally:
            self._ended.set()
            if self._holding is not None:
                await asyncio.wait({self._holding})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            endpoint = self._endpoint or await self._opened()
        except Unavailable as error:
            await refuse(error, scope, receive, send)
        else:
            await endpoint(scope, receive, send)

    async def end(self) -> None:
        """See `in_process.Endpoint.end`."""
        if self._endpoint is not None:
            await self._endpoint.end()

    async def _opened(self) -> McpApplication:
        """The endpoint, when it is open.

        Raises:
            Unavailable: ``MCP_FAILED``, ``SERVER_STOPPING``.
        """
        if self._holding is None or self._holding.done():
            self._opening = asyncio.get_running_loop().create_future()
            self._holding = asyncio.create_task(self._hold_open(self._opening))
        opening, stop = self._opening, asyncio.create_task(self._stopping.wait())
        ends: set[asyncio.Future[Any]] = {opening, stop}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
        if not opening.done():
            raise server_stopping()
        if (endpoint := opening.result()) is None:
            raise _failed()
        return endpoint

    async def _hold_open(self, opening: asyncio.Future[McpApplication | None]) -> None:
        """Load the endpoint and keep it open until the end, in one task as it demands. The task's outermost handler:
        whoever waits is refused, and the log has the reason."""
        try:
            endpoint = (await asyncio.to_thread(_imported))(self._workbench, self._stopping)
            async with endpoint.run():
                self._endpoint = endpoint
                opening.set_result(endpoint)
                await self._ended.wait()
        except Exception:
            log.exception("the MCP endpoint failed")
        finally:
            self._endpoint = None
            if not opening.done():
                opening.set_result(None)


def _imported() -> type[McpApplication]:
    from workbench.shells.mcp.in_process import McpApplication

    return McpApplication


def _failed() -> Unavailable:
    return Unavailable(
        "MCP_FAILED",
        "The MCP endpoint failed; see the server's log (.aiswarm/logs/server.log in a notebook), then send the request "
        "again. Everything else is served.",
    )
