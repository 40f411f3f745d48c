"""A provider of models on loopback that answers from a script: a plain HTTP server, so that it can also misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One response.

    Args:
        chunks: of the body, each sent by itself.
        is_whole: whether the end of the body is sent; else the connection is closed in mid-answer.
        hangs: nothing more is sent after the chunks, and the connection stays open.
        gate: waited for before the last chunk.
    """

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    is_whole: bool = True
    hangs: bool = False
    gate: asyncio.Event | None = None


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: Any


class Provider:
    """The server: answers request after request from its script, and keeps what it was asked."""

    def __init__(self, *script: Reply) -> None:
        self.requests: list[Request] = []
        self.left = asyncio.Event()
        self.asked = asyncio.Event()
        self._script = list(script)
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        try:
            self.requests.append(await _request(reader))
            self.asked.set()
            reply = self._script.pop(0) if self._script else Reply(status=418)
            await self._send(writer, reply)
            if reply.hangs:
                await reader.read()
                self.left.set()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        headers = {**reply.headers, "transfer-encoding": "chunked", "connection": "close"}
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
        if reply.hangs and not reply.chunks:
            return
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for number, chunk in enumerate(reply.chunks):
            if reply.gate is not None and number == len(reply.chunks) - 1:
                await reply.gate.wait()
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
        if reply.is_whole and not reply.hangs:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(first.split(" ")[1], headers, json.loads(body) if body else None)


@contextlib.asynccontextmanager
async def provider(*script: Reply) -> AsyncIterator[Provider]:
    """A running provider that answers with these replies, one after another; `address` is its URL."""
    made = Provider(*script)
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(made.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    made.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


def failure(status: int, body: Any, **headers: str) -> Reply:
    """A refusal, as JSON."""
    sent = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Reply([json.dumps(body).encode()], status, sent)
