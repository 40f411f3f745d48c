"""A server at a URL that answers what a test says, byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.upstream.listener import Request, answered, listening
from tests.upstream.servers import connecting, running
from workbench.upstream.connection import Upstream
from workbench.upstream.http_transport import ServerAddress

LARGEST = 2_000
JSON = "application/json"
EVENTS = "text/event-stream"
ADD = {"name": "add", "inputSchema": {"type": "object"}}
DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "public",
}
LISTED = {"tools": [ADD], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


@dataclass
class Answer:
    """The answer to a call: a body, in which `ID` stands for the number of the call."""

    body: bytes
    kind: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, id_: Any) -> bytes:
        body = self.body.replace(b'"ID"', json.dumps(id_).encode())
        headers = [f"{name}: {value}" for name, value in self.headers.items()]
        return answered(body, *headers, status=f"{self.status} Status", kind=self.kind)


@dataclass
class Raw:
    """Bytes after which the connection is closed."""

    sent: bytes

    def __call__(self, id_: Any) -> bytes:
        return self.sent


class Server:
    """A server without sessions that lists `listed`, and answers calls with `answer`."""

    def __init__(self) -> None:
        self.answer: Answer | Raw = Answer(b"")
        self.listed: dict[str, Any] = dict(LISTED)
        self.calls: list[Request] = []
        self.lists: list[Any] = []

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        message = json.loads(request.body)
        if message["method"] == "tools/call":
            self.calls.append(request)
            writer.write(self.answer(message["id"]))
            if isinstance(self.answer, Raw):
                writer.close()
            return
        if message["method"] == "tools/list":
            self.lists.append(message["params"].get("cursor"))
        known: dict[str, Any] = {"server/discover": DISCOVERED, "tools/list": self.listed}
        result = known.get(message["method"])
        outcome = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
        writer.write(answered(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode()))


@asynccontextmanager
async def connection(**listed: Any) -> AsyncIterator[tuple[Server, Upstream]]:
    """A server, and the connection to it.

    Args:
        listed: what differs in its list of tools.
    """
    server = Server()
    server.listed |= listed
    async with listening(server) as listener:
        address = ServerAddress(listener.url, {"authorization": "Bearer token"})
        async with running(connecting(address, largest=LARGEST), largest=LARGEST, check=1_000) as watched:
            yield server, await watched.ready()
