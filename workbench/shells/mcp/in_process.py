"""MCP over streamable HTTP inside the server: calls run in this process, for the caller that the gate identified."""

from __future__ import annotations

from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from workbench.app import Workbench
from workbench.model import Level
from workbench.ops import Caller
from workbench.shells.gate import unless_revoked
from workbench.shells.mcp.server import Context, server


class InProcess:
    """A backend that runs calls in this process, for the caller that the gate identified."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    async def level(self, ctx: Context) -> Level:
        return _caller(ctx).level

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


async def end_sessions(manager: StreamableHTTPSessionManager) -> None:
    """Close the streams of MCP clients cleanly; uvicorn would wait for them and then cut them off."""
    for transport in list(manager._server_instances.values()):
        await transport.terminate()
