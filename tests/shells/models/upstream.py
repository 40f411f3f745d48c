"""A provider of models on loopback, whose answers are scripted byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Script = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Asked:
    """A request that has arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> Any:
        return json.loads(self.body)


@dataclass
class Upstream:
    """The provider; `script` answers each request."""

    script: Script
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client leaves before its answer ends."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def head(kind: str = "application/json", status: str = "200 OK", **more: str) -> bytes:
    """The head of an answer that ends with its connection."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", "connection: close"]
    return "\r\n".join(
        [*lines, *(f"{name.replace('_', '-')}: {value}" for name, value in more.items()), "", ""]
    ).encode()


def says(body: Any, status: str = "200 OK", **more: str) -> Script:
    """A script that answers with JSON."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        text = body(asked) if callable(body) else body
        writer.write(head(status=status, **more) + (text if isinstance(text, bytes) else json.dumps(text).encode()))

    return answer


def streams(*events: Any, kind: str = "text/event-stream") -> Script:
    """A script that answers with events."""

    async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(head(kind))
        for event in events:
            name = f"event: {event['type']}\n" if isinstance(event, dict) and "type" in event else ""
            text = event if isinstance(event, str) else json.dumps(event)
            writer.write(f"{name}data: {text}\n\n".encode())
            await writer.drain()

    return answer


@asynccontextmanager
async def upstream(script: Script) -> AsyncIterator[Upstream]:
    """A provider, as long as the block lasts."""
    model, handling = Upstream(script), set[asyncio.Task[Any]]()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            handling.add(task)
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            asked = Asked(*lines[0].split(" ")[:2], headers, body)
            model.asked.append(asked)
            answering = asyncio.ensure_future(model.script(asked, writer))
            leaving = asyncio.create_task(reader.read())
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                model.left.set()
            leaving.cancel()
            answering.cancel()
            await answering
            await writer.drain()
        except asyncio.CancelledError:
            pass
        except (ConnectionError, asyncio.IncompleteReadError):
            model.left.set()
        finally:
            writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0, limit=1 << 20)
    model.port = server.sockets[0].getsockname()[1]
    try:
        yield model
    finally:
        server.close()
        for task in handling:
            task.cancel()
        await asyncio.gather(*handling, return_exceptions=True)
