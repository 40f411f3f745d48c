"""Peers on a port of their own that answer as a test wants it: HTTP by hand, so that they can misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from workbench.koi.identity import NodeIdentity

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[str]:
    """The address of a server that handles each connection like this, and cuts off those that are left."""
    async with AsyncExitStack() as stack:

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            stack.callback(writer.transport.abort)
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await talk(reader, writer)
            writer.close()

        server = await stack.enter_async_context(await asyncio.start_server(handle, "127.0.0.1", 0))
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(line for line in head.splitlines() if line.lower().startswith("content-length"))
    return head, await reader.readexactly(int(length.split(":")[1]))


def response(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def always(answer: Callable[[bytes], Awaitable[bytes]]) -> Talk:
    """A peer that answers every request with a function of its body."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(await answer((await request(reader))[1]))

    return talk


def as_sent(sender: NodeIdentity, payload: str, receiver: NodeIdentity | None = None) -> bytes:
    """An envelope with a payload as text, which is signed as it is; to the sender itself, if to nobody else."""
    target = (receiver or sender).rid
    text = f'{{"payload":{payload},"source_node":"{sender.rid}","target_node":"{target}"}}'
    return f'{text[:-1]},"signature":"{sender.sign(text.encode())}"}}'.encode()
