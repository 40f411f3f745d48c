"""All servers on one port: the WebSocket, MCP, KOI and HTTP shells behind one gate, and `server.json`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
from typing import Any, NoReturn, Self

import psutil
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from workbench.app import Workbench
from workbench.errors import Conflict, Unavailable
from workbench.model import ServerInfo
from workbench.rules import access
from workbench.shells import koi
from workbench.shells.asgi_server import ANSWER_SECONDS, server_failed, serving
from workbench.shells.connections import ServerConnections
from workbench.shells.gate import RequestGate, check_address
from workbench.shells.http import app as http
from workbench.shells.listen import listen, netloc
from workbench.shells.mcp.on_demand import OnDemand
from workbench.shells.models.gateway import Gateway
from workbench.shells.websocket import endpoint
from workbench.state.server_file import ServerFile
from workbench.state.settings import Settings
from workbench.state.shares import Departure, Share
from workbench.system import file_lock
from workbench.system.interpreter import many_files

REFUSING_SECONDS = 0.5
"""How long servers that hand over refuse requests before their address closes. By then the processes that take over
have noticed the stop."""
HANDOVER_SECONDS = 10
"""How long requests that are under way then have to be answered."""

log = logging.getLogger(__name__)


def application(
    workbench: Workbench, mcp: ASGIApp, gateway: Gateway, stopping: asyncio.Event, connections: ServerConnections
) -> ASGIApp:
    """The ASGI application with every endpoint; calls that wait are answered when `stopping` is set."""
    routes = [  # they are tried one after the other, and most requests are MCP's
        Route("/mcp", endpoint=mcp),
        *endpoint.routes(workbench, connections.most_anonymous),
        *koi.routes(workbench),
        gateway.route,
        *http.routes(workbench, stopping),
    ]
    handlers = {HTTPException: http.no_such_endpoint}
    return RequestGate(Starlette(routes=routes, exception_handlers=handlers), workbench, stopping=stopping)


class Servers:
    """The servers of one process, from `start` to `stop`. Starts and stops never overlap.

    Args:
        end_workers: `start` ends the workers that an earlier server left, and `stop` ends those that run. Otherwise
            they go on with their commands, and the next start takes them back. It may be changed at any time.
    """

    def __init__(self, workbench: Workbench, *, end_workers: bool = True) -> None:
        self._workbench = workbench
        self.end_workers = end_workers
        self._hands_over = False
        self._settings = workbench.settings
        self._file = ServerFile(workbench.settings.server_file)
        self._stack = contextlib.AsyncExitStack()
        self._turn = asyncio.Lock()
        self._serving: asyncio.Task[None] | None = None
        self._stopping: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int | None = None, *, operator_token: str | None = None) -> ServerInfo:
        """Serve on `port` (0: any), or on the last or preferred port, or the next free one after it.

        A start that fails or is cancelled leaves nothing behind.

        Args:
            operator_token: the one of the server before, if this process knows it because it takes over.

        Raises:
            Unavailable: ``SERVER_FAILED``, ``PROJECT_UNWRITABLE``; see `listen`. Conflict: ``ALREADY_SERVED``.
            Refused: ``REMOTE_NOT_ALLOWED``. Unauthenticated: ``ACCESS_TOKEN_REQUIRED`` (see `check_address`).
        """
        check_address(self._settings)
        async with self._turn, contextlib.AsyncExitStack() as stack:
            stack.enter_context(_election(self._settings))
            self._workbench.operator_token = operator_token or access.new_token("wbo")
            bound = stack.enter_context(await listen(self._settings, port, self._file.load().port))
            info = _describe(bound)
            stack.push_async_callback(self._workbench.serving, None)  # also if it is cancelled after the server is set
            await self._workbench.serving(info, end_workers=self.end_workers)
            stack.push_async_callback(self._end_workers)
            stopping = asyncio.Event()
            mcp = OnDemand(self._workbench, stopping)
            gateway = Gateway(self._workbench, stopping)
            stack.push_async_callback(gateway.close)
            connections = ServerConnections(self._settings, stack.enter_context(many_files()))
            app = application(self._workbench, mcp, gateway, stopping, connections)
            served = serving(app, mcp.run(), bound, connections, self._settings, self._answer_seconds)
            self._serving = await stack.enter_async_context(served)
            stack.push_async_callback(mcp.end)
            stack.push_async_callback(self._refuse_for_a_while)
            stack.callback(stopping.set)
            stack.callback(self._workbench.interrupt_calls)
            self._file.save(info, self._workbench.operator_token)
            stack.callback(self._clear_file)
            self._stack = stack.pop_all()
        return info

    async def wait(self) -> NoReturn:
        """Wait until the servers end by themselves, which happens only when they fail.

        Raises:
            Unavailable: ``SERVER_FAILED``.
        """
        if self._serving is not None:
            await asyncio.wait({self._serving})
        raise server_failed()

    def leave(self, share: Share, *, end_workers: bool) -> Departure:
        """Give up the share of this process, in any thread, before `stop`.

        `stop` then hands over to the processes that still use the project, if there are any: it leaves none of their
        requests in doubt, as each is answered, or refused and not run. Otherwise it ends the workers if it is to.
        """
        departure = share.leave(served=True, end_workers=end_workers)
        self.end_workers, self._hands_over = departure.ends_workers, departure.hands_over
        return departure

    async def stop(self) -> None:
        """Stop in reverse order of the start, leaving nothing behind. May be called twice, and during a start.

        A caller that is cancelled does not interrupt the stop: the next start or stop waits until it is complete.
        """
        stopping = asyncio.create_task(self._stop())
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            stopping.add_done_callback(_log_failure)
            raise

    async def _stop(self) -> None:
        async with self._turn:
            stack, self._stack = self._stack, contextlib.AsyncExitStack()
            await stack.aclose()

    async def _end_workers(self) -> None:
        if self.end_workers:
            await self._workbench.end_workers()
        else:
            self._workbench.release_workers()

    async def _refuse_for_a_while(self) -> None:
        """Refuse requests before the address closes: a client whose connection breaks cannot know whether its request
        was run."""
        if self._hands_over:
            await asyncio.sleep(REFUSING_SECONDS)

    def _answer_seconds(self) -> int:
        return HANDOVER_SECONDS if self._hands_over else ANSWER_SECONDS

    def _clear_file(self) -> None:
        """Clear `server.json`. A file that cannot be cleared does no harm, because its servers no longer answer."""
        try:
            self._file.clear()
        except Unavailable as error:
            log.warning("%s still names servers that are stopped: %s", self._file.path, error.message)


def _log_failure(stopped: asyncio.Task[None]) -> None:
    if not stopped.cancelled() and (error := stopped.exception()):
        log.error("the servers did not stop cleanly", exc_info=error)


@contextlib.contextmanager
def _election(settings: Settings) -> Any:
    """Hold the lock that lets only one process serve a project; it is released however that process ends."""
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
    place = netloc(bound)
    return ServerInfo(
        pid=os.getpid(),
        started=psutil.Process().create_time(),
        nonce=secrets.token_hex(16),
        url=f"http://{place}",
        ws_url=f"ws://{place}/ws",
        mcp_url=f"http://{place}/mcp",
    )
