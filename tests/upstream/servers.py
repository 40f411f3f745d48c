"""Connections to real MCP servers, in processes of their own, for tests."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.upstream.client import Target, connected
from workbench.upstream.connection import Connect, Handlers, ServerState, Upstream, UpstreamLimits
from workbench.upstream.http_transport import ServerAddress
from workbench.upstream.program_transport import LogTail, ServerProgram

if TYPE_CHECKING:
    from mcp.client import Client

SERVER = Path(__file__).with_name("tools_server.py")
OFF_PROTOCOL = Path(__file__).with_name("off_protocol_server.py")
LARGEST = 1 << 20


def program(*arguments: str, script: Path = SERVER) -> ServerProgram:
    """The tests' server as a program."""
    return ServerProgram([sys.executable, str(script), *arguments], dict(os.environ), script.parent)


@contextmanager
def http_server(*arguments: str) -> Iterator[ServerAddress]:
    """The tests' server at a URL."""
    command = [sys.executable, str(SERVER), "http", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield ServerAddress(process.stdout.readline().strip(), {})
        finally:
            process.kill()


def connecting(target: Target, era: str = "auto", tail: LogTail | None = None, largest: int = LARGEST) -> Connect:
    """Connects to a target with a version of the protocol."""

    def connect(handlers: Handlers) -> AbstractAsyncContextManager[Client]:
        chosen = Handlers(handlers.note, handlers.elicit, handlers.ended, era, handlers.answered)
        return connected(target, chosen, largest, tail or LogTail())

    return connect


class Watched:
    """An upstream with its changes."""

    def __init__(self, connect: Connect, limits: UpstreamLimits) -> None:
        self._changed = asyncio.Event()
        self.upstream = Upstream("small", connect, self._changed.set, limits)

    async def until(self, is_so: Callable[[Upstream], bool]) -> Upstream:
        while not is_so(self.upstream):
            await self._changed.wait()
            self._changed.clear()
        return self.upstream

    async def ready(self) -> Upstream:
        return await self.until(lambda upstream: upstream.state is ServerState.READY)


@asynccontextmanager
async def running(connect: Connect, **limits: float) -> AsyncIterator[Watched]:
    """Keep connected within the block."""
    watched = Watched(connect, UpstreamLimits(**{"start": 60.0, "largest": LARGEST, **limits}))  # type: ignore[arg-type]
    task = asyncio.create_task(watched.upstream.run())
    try:
        yield watched
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert watched.upstream.state is ServerState.STOPPED
