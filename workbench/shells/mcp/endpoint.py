"""One caller's connection to the server's MCP endpoint, over HTTP: messages in, and what the server answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from functools import partial

import httpx2

from workbench.client.http import connection
from workbench.client.messages import no_server
from workbench.client.project_server import ProjectServer
from workbench.errors import from_dict
from workbench.shells.mcp.messages import Message, headers_of, protocol_of

PATH = "/mcp"
SESSION = "Mcp-Session-Id"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
TIMEOUT = httpx2.Timeout(10.0, read=None)
"""A call may wait for as long as it likes; whether the server is there shows when it is connected to."""


class SessionLost(Exception):
    """The server does not know the session, as after a restart."""


class McpEndpoint:
    """See the module.

    Args:
        server: where the server is now; what else comes to that address is sent nothing.
        token: an agent's; without one, what anonymous callers may do.
    """

    def __init__(self, server: ProjectServer, token: str | None) -> None:
        self.replaced = asyncio.Event()
        """Set when the client has another token, and this endpoint only ends what is under way."""
        self._http = connection(server.url, token, partial(server.is_away, server.url))
        self._session: str | None = None
        self._version: str | None = None

    @property
    def has_session(self) -> bool:
        """Whether a session is open, as far as is known."""
        return self._session is not None

    async def initialize(self, message: Message) -> AsyncIterator[Message]:
        """Open a session; the server's answer.

        Raises:
            WorkbenchError: as of `send`.
        """
        self._session = None
        async for answer in self._exchange("POST", {}, message):
            result = answer.get("result")
            if isinstance(result, dict):
                self._version = str(result.get("protocolVersion"))
            yield answer

    async def send(self, message: Message) -> AsyncIterator[Message]:
        """Send a message; what the server answers: notifications, then the response to a request.

        Raises:
            SessionLost. WorkbenchError: what the server raised; ``NO_SERVER`` when none answers.
        """
        version = protocol_of(message)
        headers = self._of_session() if version is None else headers_of(message, version)
        async for answer in self._exchange("POST", headers, message):
            yield answer

    async def stream(self) -> AsyncIterator[Message]:
        """What the server sends by itself in the session.

        Raises:
            SessionLost. WorkbenchError: as of `send`.
        """
        async for message in self._exchange("GET", self._of_session()):
            if "method" in message:
                yield message

    async def close(self) -> None:
        """End the session, if the server still answers, and close all connections."""
        if self._session is not None:
            with contextlib.suppress(httpx2.HTTPError):
                await self._http.delete(PATH, headers=self._of_session())
        await self._http.aclose()

    def _of_session(self) -> dict[str, str]:
        if self._session is None:
            return {}
        return {SESSION: self._session, "MCP-Protocol-Version": self._version or ""}

    async def _exchange(
        self, method: str, headers: Mapping[str, str], message: Message | None = None
    ) -> AsyncIterator[Message]:
        content = None if message is None else json.dumps(message, ensure_ascii=False).encode()
        try:
            async with self._http.stream(
                method, PATH, content=content, headers={**ACCEPT, **headers}, timeout=TIMEOUT
            ) as response:
                self._session = self._session or response.headers.get(SESSION)
                if response.status_code == 404 and SESSION in headers:
                    self._session = None if self._session == headers[SESSION] else self._session
                    raise SessionLost
                async for answer in _messages(response, message):
                    yield answer
        except httpx2.HTTPError as error:
            raise no_server(error) from error


async def _messages(response: httpx2.Response, request: Message | None) -> AsyncIterator[Message]:
    """The messages in a response; a request is answered, also when the connection ends before."""
    awaited = request.get("id") if request is not None and "method" in request else None
    if response.headers.get("Content-Type", "").startswith("text/event-stream"):
        async for answer in _events(response):
            yield answer
            if awaited is not None and answer.get("id") == awaited and "method" not in answer:
                return
        if awaited is not None:
            raise no_server(ConnectionError("the connection ended before the answer"))
        return
    content = await response.aread()
    if content:
        yield _answer(content, awaited)


def _answer(content: bytes, awaited: object) -> Message:
    """The answer in the body of a response.

    Raises:
        WorkbenchError: the error in it; ``NO_SERVER`` when it is not the reply of a Workbench server.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    match body:
        case {"jsonrpc": _}:
            return body if body.get("id") is not None else {**body, "id": awaited}
        case {"success": False, "error": {"code": _} as error}:
            raise from_dict(error)
    raise no_server(ValueError("what answers there is another program"))


async def _events(response: httpx2.Response) -> AsyncIterator[Message]:
    """The messages of a stream of server-sent events."""
    data: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and any(data):
            yield json.loads("\n".join(data))
            data = []
