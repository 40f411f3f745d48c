"""All servers on one port: the WebSocket, MCP and HTTP shells behind one gate, and `server.json`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator
from typing import Any, Self

import psutil
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from workbench import file_lock
from workbench.app import Workbench
from workbench.errors import Conflict, Unavailable
from workbench.model import ServerInfo
from workbench.server_file import ServerFile
from workbench.settings import Settings
from workbench.shells.gate import Gate, check_address
from workbench.shells.http import app as http
from workbench.shells.mcp import in_process
from workbench.shells.websocket import endpoint

log = logging.getLogger(__name__)


def application(workbench: Workbench, manager: StreamableHTTPSessionManager, stopping: asyncio.Event) -> ASGIApp:
    """The ASGI application with every endpoint; who waits over HTTP is answered when `stopping` is set."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    routes = [
        *http.routes(workbench, stopping),
        endpoint.route(workbench),
        Route("/mcp", endpoint=StreamableHTTPASGIApp(manager)),
    ]
    handlers = {HTTPException: http.no_such_endpoint}
    return Gate(Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers), workbench)


class Servers:
    """The servers of one process, from `start` to `stop`."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._settings = workbench.settings
        self._file = ServerFile(workbench.settings.server_file)
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int | None = None) -> ServerInfo:
        """Serve on `port` (0: any), or on the last or preferred port, or the next free one after it.

        Raises:
            Unavailable: ``PORT_TAKEN`` (a port was asked for). Conflict: ``ALREADY_SERVED``.
            Refused: ``REMOTE_NOT_ALLOWED``. Unauthenticated: ``ACCESS_TOKEN_REQUIRED`` (see `check_address`).
        """
        check_address(self._settings)
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(_election(self._settings))
            known = self._file.load()
            self._workbench.operator_token = known.operator_token or self._workbench.operator_token
            bound = stack.enter_context(bind(self._settings, port, known.port))
            info = _describe(bound)
            await self._workbench.serving(info)
            stack.push_async_callback(self._workbench.serving, None)
            stack.push_async_callback(self._workbench.end_workers)
            sessions = in_process.sessions(self._workbench)
            stopping = asyncio.Event()
            app = application(self._workbench, sessions, stopping)
            await stack.enter_async_context(_serving(app, bound, self._settings))
            stack.push_async_callback(in_process.end_sessions, sessions)
            stack.callback(stopping.set)
            self._file.save(info, self._workbench.operator_token)
            stack.callback(self._file.clear)
            self._stack = stack.pop_all()
        return info

    async def stop(self) -> None:
        """Stop, in reverse order of the start; nothing is left behind. May be called twice."""
        stack, self._stack = self._stack, contextlib.AsyncExitStack()
        await stack.aclose()


def bind(settings: Settings, port: int | None, last: int | None) -> socket.socket:
    """A listening socket.

    Raises:
        Unavailable: ``PORT_TAKEN``, ``NO_FREE_PORT``.
    """
    if port is not None:
        return _listen(settings.host, port)
    for candidate in (last or settings.port, *range(settings.port, min(settings.port + 20, 65_536)), 0):
        try:
            return _listen(settings.host, candidate)
        except Unavailable:
            continue
    raise Unavailable("NO_FREE_PORT", "No port could be bound. Give one with --port.")


def _listen(host: str, port: int) -> socket.socket:
    # The protocol number matters: asyncio sets TCP_NODELAY only on sockets that carry it,
    # and without it every small reply waits 40 ms for the peer's delayed acknowledgement.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(1024)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise Unavailable(
                "PORT_TAKEN", f"Port {port} is taken by another program. Choose another, or 0 for any."
            ) from None
        raise Unavailable("PORT_TAKEN", f"Port {port} cannot be bound: {error.strerror}.") from None
    return made


@contextlib.contextmanager
def _election(settings: Settings) -> Any:
    """One process serves a project: the lock is free again when that process ends, however it ends."""
    with file_lock.held(settings.home / "server.lock") as held:
        if not held:
            known = ServerFile(settings.server_file).load()
            raise Conflict(
                "ALREADY_SERVED",
                f"Process {known.info.pid if known.info else '?'} already serves this project"
                + (f" at {known.info.url}." if known.info else "."),
            )
        yield


def _describe(bound: socket.socket) -> ServerInfo:
    host, port = bound.getsockname()[:2]
    host = "127.0.0.1" if host == "0.0.0.0" else host  # every address of the machine; programs on it use this one
    return ServerInfo(
        pid=os.getpid(),
        started=psutil.Process().create_time(),
        nonce=secrets.token_hex(16),
        url=f"http://{host}:{port}",
        ws_url=f"ws://{host}:{port}/ws",
        mcp_url=f"http://{host}:{port}/mcp",
    )


@contextlib.asynccontextmanager
async def _serving(app: ASGIApp, bound: socket.socket, settings: Settings) -> AsyncIterator[None]:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # else any neighbour could say that it is somebody else
        lifespan="on",
        ws="websockets-sansio",
        ws_max_size=settings.max_frame_bytes,
        ws_ping_interval=30,
        ws_ping_timeout=60,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server._serve(sockets=[bound]))
    while not server.started and not running.done():
        await asyncio.sleep(0.002)
    if running.done():
        await running
        raise Unavailable("SERVER_FAILED", "The servers did not start; the log says why.")
    try:
        yield
    finally:
        server.should_exit = True
        await running
        if left := set(server.server_state.tasks):  # uvicorn has cancelled them, and does not wait for them to end
            await asyncio.wait(left)
