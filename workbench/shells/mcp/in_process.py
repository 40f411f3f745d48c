"""MCP over streamable HTTP inside the server: calls run in this process, for the caller that the gate identified."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from workbench.app import Workbench
from workbench.ops import Caller
from workbench.rules.tools.surroundings import Surroundings
from workbench.services.tools.tool import ToolInfo, ToolOutcome
from workbench.shells.gate import is_stranger, unless_ended
from workbench.shells.mcp.backend import Context, caller_of
from workbench.shells.mcp.guidance import guidance
from workbench.shells.mcp.notifications import Notifications
from workbench.shells.mcp.server import server
from workbench.shells.mcp.streams import alongside, ended_for, present
from workbench.shells.mcp.tasks import McpTasks, TaskLimits

ANSWER_SECONDS = 1.0
"""How long calls may go on when the servers stop, or their session ends."""


class InProcess:
    """A backend that runs calls in this process, for the caller that the gate identified.

    Args:
        stopping: set when the servers are about to stop; calls that wait are then answered.
    """

    def __init__(self, workbench: Workbench, stopping: asyncio.Event) -> None:
        self._workbench = workbench
        self._stopping = stopping
        self._stop: asyncio.Future[Any] | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Answer calls that wait when the servers are about to stop, within the block."""
        self._stop = asyncio.create_task(self._stopping.wait())
        try:
            yield
        finally:
            self._stop.cancel()

    async def caller(self, ctx: Context) -> Caller:
        return caller_of(ctx)

    async def guidance(self, ctx: Context) -> str:
        caller = caller_of(ctx)
        return guidance(caller.level, supervised=caller.supervised)

    async def call(
        self, ctx: Context, name: str, arguments: dict[str, Any], surroundings: Surroundings = Surroundings()
    ) -> dict[str, Any]:
        caller = caller_of(ctx)
        work = self._workbench.dispatch(caller, name, arguments, surroundings=surroundings)
        op = self._workbench.catalogue.get(name)
        if op is None or not (op.waits(arguments) or surroundings.elicit):
            return await work
        return await unless_ended(self._workbench, caller, work, self._stop)

    async def tools(self, ctx: Context) -> list[ToolInfo]:
        return await self._workbench.tools(caller_of(ctx))

    async def call_tool(
        self, ctx: Context, name: str, arguments: dict[str, Any], surroundings: Surroundings
    ) -> ToolOutcome:
        caller = caller_of(ctx)
        work = self._workbench.call_tool(caller, name, arguments, surroundings)
        return await unless_ended(self._workbench, caller, work, self._stop)


class McpApplication:
    """The ASGI application of the MCP endpoint, within `run`.

    An agent is connected while its session's stream is open; the stream ends when its token becomes invalid.

    Args:
        stopping: set when the servers are about to stop.
    """

    def __init__(self, workbench: Workbench, stopping: asyncio.Event) -> None:
        self._workbench = workbench
        self._backend = backend = InProcess(workbench, stopping)
        self._notifications = Notifications(workbench, backend, stopping)
        settings = workbench.settings
        limits = TaskLimits(settings.mcp_task_after_seconds, settings.mcp_task_kept_seconds, settings.max_mcp_tasks)
        self._tasks = McpTasks(limits, workbench.store.now)
        self._manager = StreamableHTTPSessionManager(
            server(workbench.catalogue, backend, self._tasks, self._notifications.listen, self._notifications),
            max_request_body_size=settings.max_frame_bytes,
        )
        self._answering: dict[asyncio.Future[None], str | None] = {}

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve sessions within the block; once only."""
        async with self._backend.open(), self._manager.run():
            try:
                yield
            finally:
                await self._tasks.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller = scope["state"]["caller"]
        if not is_stranger(caller):
            scope["user"] = _principal(caller)
        session_id = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        if scope["method"] == "GET" and session_id is not None:
            await self._stream(session_id, scope, receive, send)
            return
        async with self._noted(session_id):
            await self._manager.asgi_app(scope, receive, send)

    async def end(self) -> None:
        """Answer the calls that wait, then close the streams of clients cleanly.

        uvicorn would wait for the streams, and then cut them off.
        """
        await self._answered(self._answering)
        for transport in list(self._manager._server_instances.values()):
            await transport.terminate()

    async def _stream(self, session_id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """The stream of a session, by which it is notified."""
        caller: Caller = scope["state"]["caller"]
        is_open = asyncio.Event()

        async def noting(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start" and message["status"] == 200:
                is_open.set()

        async with (
            present(self._workbench, caller, scope["client"]),
            alongside(self._end_when_revoked(caller, session_id), self._notifications.deliver(session_id, is_open)),
        ):
            await self._manager.asgi_app(scope, receive, noting)

    async def _end_when_revoked(self, caller: Caller, session_id: str) -> None:
        """End a session that its agent may no longer use. The request that waits for this is one of the session, or has
        been refused."""
        await ended_for(self._workbench, caller)
        await self._answered([call for call, session in self._answering.items() if session == session_id])
        if (transport := self._manager._server_instances.get(session_id)) is not None:
            await transport.terminate()

    @asynccontextmanager
    async def _noted(self, session_id: str | None) -> AsyncIterator[None]:
        """Note a request, and its session if it has one, until it is answered."""
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answering[answered] = session_id
        try:
            yield
        finally:
            del self._answering[answered]
            answered.set_result(None)

    async def _answered(self, calls: Iterable[asyncio.Future[None]]) -> None:
        """Wait until these calls are answered, but not for long."""
        if waiting := list(calls):
            await asyncio.wait(waiting, timeout=ANSWER_SECONDS)


def _principal(caller: Caller) -> AuthenticatedUser:
    """The user to which the MCP library binds a session, so that nobody can use another's session."""
    identity = caller.agent or caller.name
    return AuthenticatedUser(AccessToken(token="", client_id=identity, subject=identity, scopes=[]))
