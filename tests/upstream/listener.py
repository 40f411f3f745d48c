"""A server of HTTP that answers with given bytes, over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count


@dataclass(frozen=True)
class Request:
    """A request that has arrived.

    Args:
        connection: which one it came over, from 1.
    """

    head: str
    body: bytes
    connection: int


Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Listener:
    """A server on loopback: the requests that have arrived, and the connections that its clients have closed."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    closed: asyncio.Queue[int] = field(default_factory=asyncio.Queue)


@asynccontextmanager
async def listening(answer: Answer) -> AsyncIterator[Listener]:
    """Serve within the block."""
    listener, numbers = Listener(), count(1)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(numbers)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length: ")[2].partition("\r")[0])
                request = Request(head, await reader.readexactly(length), number)
                listener.requests.append(request)
                await answer(request, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            listener.closed.put_nowait(number)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    listener.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield listener
    finally:
        server.close()


def answered(body: bytes, *headers: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """An answer that says how long it is."""
    head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body
