"""The client of the MCP package, connected to a target."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from workbench.upstream.connection import Handlers
from workbench.upstream.http_transport import http_streams
from workbench.upstream.program_transport import LogTail, program_streams
from workbench.upstream.target import Program, Target

if TYPE_CHECKING:
    from mcp.client import Client


@asynccontextmanager
async def connected(target: Target, handlers: Handlers, largest: int, tail: LogTail) -> AsyncIterator[Client]:
    """A client that has agreed on a version of the protocol with the server; the newest of those that both know.

    Args:
        largest: bytes of a message from the server.
        tail: gets what a program writes to its standard error.

    Raises:
        OSError: a program cannot be started. MCPError, TransportError: the server does not answer as it should.
    """
    from mcp.client import Client

    if isinstance(target, Program):
        streams = program_streams(target, largest, tail, handlers.ended)
    else:
        streams = http_streams(target, largest)
    async with Client(
        streams, mode=handlers.era, message_handler=handlers.note, elicitation_callback=handlers.elicit
    ) as client:
        yield client
