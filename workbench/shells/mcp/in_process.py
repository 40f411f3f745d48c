"""MCP over streamable HTTP inside the server: calls run in this process, for the caller that the gate identified."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import WorkbenchError
from workbench.model import Level
from workbench.ops import Caller
from workbench.shells.gate import revoked, unless_revoked
from workbench.shells.mcp.guidance import guidance
from workbench.shells.mcp.server import Context, server

log = logging.getLogger(__name__)


class InProcess:
    """A backend that runs calls in this process, for the caller that the gate identified."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    async def level(self, ctx: Context) -> Level:
        return _caller(ctx).level

    async def guidance(self, ctx: Context) -> str:
        caller = _caller(ctx)
        return guidance(caller.level, supervised=caller.supervised)

    async def call(self, ctx: Context, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        caller = _caller(ctx)
        work = self._workbench.dispatch(caller, name, arguments)
        if not arguments.get("wait_seconds"):
            return await work
        return await unless_revoked(self._workbench, caller, work)


def _caller(ctx: Context) -> Caller:
    assert ctx.request is not None, "streamable HTTP carries its request"
    caller: Caller = ctx.request.state.caller
    return caller


def sessions(workbench: Workbench) -> StreamableHTTPSessionManager:
    """The session manager of the MCP endpoint."""
    return StreamableHTTPSessionManager(
        server(workbench.catalogue, InProcess(workbench)),
        max_request_body_size=workbench.settings.max_frame_bytes,
    )


class Endpoint:
    """The ASGI application of the MCP endpoint.

    An agent is connected while its session's stream is open; the stream ends when its token becomes invalid.
    """

    def __init__(self, workbench: Workbench, manager: StreamableHTTPSessionManager) -> None:
        self._workbench = workbench
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["state"]["caller"]
        session = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        if scope["method"] != "GET" or session is None or caller.agent is None:
            await self._manager.asgi_app(scope, receive, send)
            return
        async with self._present(caller, scope), asyncio.TaskGroup() as group:
            ending = group.create_task(self._end_when_revoked(caller, session))
            await self._manager.asgi_app(scope, receive, send)
            ending.cancel()

    def _present(self, caller: Caller, scope: Scope) -> AbstractAsyncContextManager[None]:
        if caller.level is Level.ANONYMOUS:
            return nullcontext()
        host, port = scope["client"]
        return self._workbench.connected(caller, "mcp", f"{host}:{port}")

    async def _end_when_revoked(self, caller: Caller, session: str) -> None:
        """End a session that its agent may no longer use. The request that waits for this is one of the session, or has
        been refused."""
        try:
            await revoked(self._workbench, caller)
        except WorkbenchError:  # the store failed: the client can connect again
            log.warning("the stream of %s ends, because it can no longer be watched", caller.name, exc_info=True)
        if (transport := self._manager._server_instances.get(session)) is not None:
            await transport.terminate()


async def end_sessions(manager: StreamableHTTPSessionManager) -> None:
    """Close the streams of MCP clients cleanly; uvicorn would wait for them and then cut them off."""
    for transport in list(manager._server_instances.values()):
        await transport.terminate()
