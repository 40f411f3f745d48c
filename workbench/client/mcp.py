"""Operations as MCP tools over streamable HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx2

from workbench.client.http import connection, no_server
from workbench.errors import BadInput, WorkbenchError, from_dict

if TYPE_CHECKING:
    from mcp.client import Client

T = TypeVar("T")


class McpClient:
    """Calls operations as MCP tools over streamable HTTP. An asynchronous context manager.

    Args:
        url: the MCP endpoint, such as ``http://127.0.0.1:8765/mcp``.
        token: an agent's; without one only ``register`` and ``registration_status`` are offered.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url = url
        self._token = token
        self._line: _Line | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._line is not None:
            await self._line.close()

    async def tools(self) -> list[str]:
        """Names of the tools the token is offered.

        Raises:
            WorkbenchError: as of `call`.
        """
        listed = await self._connected().ask(lambda client: client.list_tools(cache_mode="refresh"))
        return [tool.name for tool in listed.tools]

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when none answers.
        """
        result = await self._connected().ask(lambda client: client.call_tool(name, arguments))
        data: dict[str, Any] = result.structured_content or {}
        if not result.is_error:
            return data
        raise from_dict(data.get("error") or {})

    def _connected(self) -> _Line:
        if self._line is None or self._line.broken:
            self._line = _Line(self._url, self._token)
        return self._line


class _Line:
    """An MCP connection, held by a task of its own: when it breaks it cancels that, not whoever uses it."""

    def __init__(self, url: str, token: str | None) -> None:
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._refusal: WorkbenchError | None = None
        self._failure: BaseException | None = None
        self._holding = asyncio.create_task(self._hold(url, token))

    @property
    def broken(self) -> bool:
        """Whether it is of no use any more."""
        return self._holding.done()

    async def ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Ask over the connection; what goes wrong with it is a `WorkbenchError`."""
        from mcp.shared.exceptions import MCPError

        async def asked() -> T:
            return await question(await asyncio.shield(self._ready))

        self._refusal = None
        asking = asyncio.create_task(asked())
        try:
            await asyncio.wait({asking, self._holding}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return await asking
        except (MCPError, httpx2.HTTPError) as error:
            self._failure = error
        finally:
            asking.cancel()
        raise self._refusal or no_server(self._failure or ConnectionError("the connection was closed"))

    async def close(self) -> None:
        """Let go of the connection."""
        self._closing.set()
        await self._holding

    async def _hold(self, url: str, token: str | None) -> None:
        from mcp.client import Client
        from mcp.client.streamable_http import streamable_http_client

        http = connection(url, token)
        http.event_hooks = {"response": [self._note_refusal]}
        try:
            async with http, Client(streamable_http_client(url, http_client=http)) as client:
                self._ready.set_result(client)
                await self._closing.wait()
        except Exception as error:  # whatever broke it: whoever asks next is told
            self._failure = _first(error)

    async def _note_refusal(self, response: httpx2.Response) -> None:
        """Keep why the server turned a request away; the MCP client only says that it did."""
        if response.status_code == 413:
            self._refusal = BadInput("TOO_LARGE", "The server does not take a request of this size.")
        elif response.status_code >= 400:
            with contextlib.suppress(ValueError):
                body = json.loads(await response.aread())
                if isinstance(body, dict) and "success" in body:
                    self._refusal = from_dict(body["error"])


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
