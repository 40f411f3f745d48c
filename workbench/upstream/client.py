"""The client of the MCP package, connected to a target."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from workbench.client.mended import mended
from workbench.process import ProcessRef
from workbench.upstream.connection import Handlers
from workbench.upstream.http_transport import ServerAddress, http_streams, sse_streams
from workbench.upstream.program_transport import LogTail, ServerProgram, program_streams

if TYPE_CHECKING:
    from mcp.client import Client, Transport
    from mcp.client.session import ListRootsFnT

Target = ServerProgram | ServerAddress
"""A program that is started, or a server at a URL."""


@asynccontextmanager
async def connected(
    target: Target,
    handlers: Handlers,
    largest: int,
    tail: LogTail,
    started: Callable[[ProcessRef], None] = lambda process: None,
) -> AsyncIterator[Client]:
    """A client that has agreed with the server on the newest version of the protocol that both know.

    Args:
        largest: bytes of a message from the server.
        tail: gets a program's standard error.
        started: called with the process of a program.

    Raises:
        OSError: a program cannot be started. MCPError, TransportError: the server does not answer as it should.
    """
    from mcp.client import Client

    client = Client(
        mended(_streams(target, handlers, largest, tail, started), lambda: client.session.protocol_version),
        mode=handlers.era,
        message_handler=handlers.note,
        elicitation_callback=handlers.elicit,
        list_roots_callback=_roots(target),
    )
    async with client:
        yield client


def _roots(target: Target) -> ListRootsFnT | None:
    """Tells a program its roots; None: it has none, and a server elsewhere needs none."""
    from mcp.types import ListRootsResult, Root

    roots = target.roots if isinstance(target, ServerProgram) else ()

    async def answer(context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root.model_validate({"uri": root.as_uri()}) for root in roots])

    return answer if roots else None


def _streams(
    target: Target, handlers: Handlers, largest: int, tail: LogTail, started: Callable[[ProcessRef], None]
) -> Transport:
    if isinstance(target, ServerProgram):
        return program_streams(target, largest, tail, handlers.ended, started)
    return (sse_streams if target.is_sse else http_streams)(target, largest, handlers.answered)
