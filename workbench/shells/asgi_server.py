"""Runs uvicorn on a listening socket, in its own task beside the program's other work."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager

import uvicorn
from starlette.types import ASGIApp

from workbench.errors import Unavailable
from workbench.settings import Settings

log = logging.getLogger(__name__)


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the program, sets `answers` when ready, and closes its connections when its loop fails."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()

    async def main_loop(self) -> None:
        try:
            await super().main_loop()
        except Exception:  # uvicorn then closes the connections
            log.exception("the servers failed")


@contextlib.asynccontextmanager
async def serving(
    app: ASGIApp, around: AbstractAsyncContextManager[None], bound: socket.socket, settings: Settings
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve an application until the block ends. The block gets the task that serves, to notice when it fails.

    Args:
        around: entered before the first request and exited after the last one, both in the task that serves.

    Raises:
        Unavailable: ``SERVER_FAILED``: it did not start. The reason is in the log.
    """
    server = _Uvicorn(_config(app, settings))
    running = asyncio.create_task(_serve(server, around, bound))
    answers = asyncio.create_task(server.answers.wait())
    try:
        await asyncio.wait({running, answers}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            raise server_failed()
        yield running
    finally:
        answers.cancel()
        server.should_exit = True
        await asyncio.wait({running})
        if left := set(server.server_state.tasks):  # uvicorn has cancelled them without waiting for their end
            await asyncio.wait(left)


def server_failed() -> Unavailable:
    """The error when the servers cannot start, or end by themselves."""
    return Unavailable(
        "SERVER_FAILED", "The servers failed; see the log (.aiswarm/logs/server.log in a notebook), then start again."
    )


async def _serve(server: _Uvicorn, around: AbstractAsyncContextManager[None], bound: socket.socket) -> None:
    """The task's outermost handler: whoever waits for the task learns that it ended, and the log has the reason."""
    try:
        async with around:
            await server.serve(sockets=[bound])
    except Exception:
        log.exception("the servers failed")


def _config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # else a client could fake its address with a header
        lifespan="off",
        ws="websockets-sansio",
        ws_max_size=settings.max_frame_bytes,
        ws_ping_interval=30,
        ws_ping_timeout=60,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
    )
