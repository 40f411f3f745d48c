"""A provider of models on loopback: a real server that answers as the test tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field


@dataclass
class Provider:
    """A provider that answers every request with one reply.

    Args:
        is_silent: it then neither sends more nor closes the connection.
        requests: the heads of those it got.
    """

    address: str = ""
    reply: bytes = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"data":[]}'
    is_silent: bool = False
    requests: list[str] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        with closing(writer), suppress(asyncio.IncompleteReadError):  # the client gave up before it had asked
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head.decode())
            writer.write(self.reply)
            if self.is_silent:
                await reader.read()  # until the client gives up


@asynccontextmanager
async def running() -> AsyncIterator[Provider]:
    """A running provider."""
    provider = Provider()
    server = await asyncio.start_server(provider.answer, "127.0.0.1", 0)
    provider.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield provider
