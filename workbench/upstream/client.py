"""The client of the MCP package, connected to a target."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from workbench.process import ProcessRef
from workbench.upstream.connection import Handlers
from workbench.upstream.http_transport import http_client, sse_streams
from workbench.upstream.program_transport import LogTail, program_streams
from workbench.upstream.target import Address, Program, Target

if TYPE_CHECKING:
    from mcp.client import Client, Transport


@asynccontextmanager
async def connected(
    target: Target,
    handlers: Handlers,
    largest: int,
    tail: LogTail,
    started: Callable[[ProcessRef], None] = lambda process: None,
) -> AsyncIterator[Client]:
    """A client that has agreed on a version of the protocol with the server; the newest of those that both know.

    Args:
        largest: bytes of a message from the server.
        tail: gets what a program writes to its standard error.
        started: called with the process of a program.

    Raises:
        OSError: a program cannot be started. MCPError, TransportError: the server does not answer as it should.
    """
    connecting: AbstractAsyncContextManager[Client]
    if isinstance(target, Program):
        connecting = _client(program_streams(target, largest, tail, handlers.ended, started), handlers)
    elif target.is_sse:
        connecting = _client(sse_streams(target, largest), handlers)
    else:
        connecting = _over_http(target, handlers, largest)
    async with connecting as client:
        yield client


@asynccontextmanager
async def _over_http(address: Address, handlers: Handlers, largest: int) -> AsyncIterator[Client]:
    from mcp.client.streamable_http import streamable_http_client

    from workbench.upstream.http_calls import HttpCalls
    from workbench.upstream.http_posts import posts

    async with http_client(address, largest) as http, posts(http, address.url, largest) as post:
        streams = streamable_http_client(address.url, http_client=http, max_sse_event_size=largest)
        async with _client(streams, handlers) as client:
            session = client.session
            session._dispatcher = HttpCalls(session._dispatcher, post, largest)
            yield client


def _client(streams: Transport, handlers: Handlers) -> Client:
    from mcp.client import Client

    return Client(streams, mode=handlers.era, message_handler=handlers.note, elicitation_callback=handlers.elicit)
