"""Runs uvicorn on a listening socket, in its own task beside the program's other work.

Connections are accepted by `acceptor`; the middleware `Observed` notes how far the request of each one is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workbench.errors import Unavailable
from workbench.shells.acceptor import Acceptor
from workbench.shells.batches import BatchingWebSockets
from workbench.shells.connections import KEEP_ALIVE_SECONDS, PEER, ConnectedPeer, ServerConnections, Stage
from workbench.state.settings import Settings

CLIENTS_FAULTS = frozenset(
    {
        "Invalid HTTP request received.",
        "Invalid UTF-8 sequence received from client.",
        "Unsupported upgrade request.",
        "ASGI callable returned without completing handshake.",  # the client has left
    }
)
"""What uvicorn logs for each client that breaks the protocol, so that any client could fill the log."""

ANSWER_SECONDS = 1
"""How long requests that are under way when the servers stop have to be answered."""

log = logging.getLogger(__name__)


class _Uvicorn(uvicorn.Server):
    """Leaves signals and accepting to the program, sets `answers` when ready, and always closes its connections."""

    def __init__(self, config: uvicorn.Config, bound: socket.socket, connections: ServerConnections) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()
        self._ticks: asyncio.Task[None] | None = None
        self._connections = connections
        self._acceptor = Acceptor(bound, connections, self._protocol)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._acceptor.start()
        self.answers.set()

    async def main_loop(self) -> None:
        self._ticks = asyncio.create_task(self._tick())
        await asyncio.wait({self._ticks})
        if not self._ticks.cancelled() and (error := self._ticks.exception()):  # uvicorn then closes the connections
            log.error("the servers failed", exc_info=error)

    async def _tick(self) -> None:
        """Renew the header with the date once a second; uvicorn's own loop wakes ten times as often, to see its end."""
        while not await self.on_tick(0):
            await asyncio.sleep(1.0)

    def end(self) -> None:
        """End the main loop now, not at its next tick, and also if it has not begun."""
        self.should_exit = True
        if self._ticks is not None:
            self._ticks.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._acceptor.close()
        # Nothing is lost with those that wait; and uvicorn fails when it closes a WebSocket a second time.
        self._connections.close(lambda peer: peer.waits or peer.is_closing)
        try:
            if self.server_state.connections or self.server_state.tasks:  # else it would wait for none of them
                await super().shutdown(sockets)
        except Exception:
            for task in self.server_state.tasks:
                task.cancel()
            raise
        finally:  # a client that reads nothing would keep its connection, and the task that sends to it
            await self._acceptor.end()

    def _protocol(self, peer: ConnectedPeer) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state={PEER: peer}
        )
        return protocol


class Observed:
    """ASGI middleware: notes how far the request of each connection is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer: ConnectedPeer = scope["state"][PEER]
        peer.request = request = object()
        peer.enter(Stage.HANDLED)
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, _body(peer, receive), send)
        finally:
            if peer.request is request:  # a client that does not wait for the answer may have sent the next one
                peer.enter(Stage.IDLE)


def _body(peer: ConnectedPeer, receive: Receive) -> Receive:
    """`receive`, noting when the body is read and when it is complete."""
    is_complete = False

    async def observed() -> Message:
        nonlocal is_complete
        if is_complete:
            return await receive()
        if peer.stage is not Stage.RECEIVING:
            peer.enter(Stage.RECEIVING)
        message = await receive()
        if not message.get("more_body", False):
            is_complete = True
            peer.enter(Stage.HANDLED)
        return message

    return observed


@contextlib.asynccontextmanager
async def serving(
    app: ASGIApp,
    around: AbstractAsyncContextManager[None],
    bound: socket.socket,
    connections: ServerConnections,
    settings: Settings,
    answer_seconds: Callable[[], int] = lambda: ANSWER_SECONDS,
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve an application until the block ends. The block gets the task that serves, to notice when it fails.

    Args:
        around: entered before the first request and exited after the last one, both in the task that serves.
        answer_seconds: how long requests that are under way at the end have to be answered.

    Raises:
        Unavailable: ``SERVER_FAILED``: it did not start. The reason is in the log.
    """
    logging.getLogger("uvicorn.error").addFilter(_is_worth_a_record)
    server = _Uvicorn(_config(Observed(app), settings), bound, connections)
    running = asyncio.create_task(_serve(server, around))
    answers = asyncio.create_task(server.answers.wait())
    try:
        await asyncio.wait({running, answers}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            raise server_failed()
        yield running
    finally:
        answers.cancel()
        server.config.timeout_graceful_shutdown = answer_seconds()
        server.end()
        await asyncio.wait({running})
        if unfinished := set(server.server_state.tasks):  # uvicorn has cancelled them without waiting for their end
            await asyncio.wait(unfinished)


def _is_worth_a_record(record: logging.LogRecord) -> bool:
    """Drop records about clients that break the protocol: they are answered or closed, and nothing failed here."""
    return record.msg not in CLIENTS_FAULTS


def server_failed() -> Unavailable:
    """The error when the servers cannot start, or end by themselves."""
    return Unavailable(
        "SERVER_FAILED", "The servers failed; see the log (.aiswarm/logs/server.log in a notebook), then start again."
    )


async def _serve(server: _Uvicorn, around: AbstractAsyncContextManager[None]) -> None:
    """The task's outermost handler: whoever waits for the task learns that it ended, and the log has the reason."""
    try:
        async with around:
            await server.serve(sockets=[])
    except Exception:
        log.exception("the servers failed")


def _config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # else a client could fake its address with a header
        lifespan="off",
        ws=BatchingWebSockets,
        ws_max_size=settings.max_frame_bytes,
        ws_ping_interval=30,
        ws_ping_timeout=60,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=ANSWER_SECONDS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
