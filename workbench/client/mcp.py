"""Operations as MCP tools over streamable HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx2

from workbench.client.address import http_url
from workbench.client.http import IsAway, connection
from workbench.client.messages import bad_reply, no_server
from workbench.errors import BadInput, WorkbenchError, first_within, from_dict
from workbench.rules.wire.arguments import plain

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.types import CallToolResult

T = TypeVar("T")


class McpClient:
    """Calls operations as MCP tools over streamable HTTP. An asynchronous context manager.

    Args:
        url: the MCP endpoint, such as ``http://127.0.0.1:8765/mcp``.
        token: an agent's; without one only ``register`` and ``registration_status`` are offered.
        is_away: see `workbench.client.http.connection`.

    Raises:
        BadInput: ``BAD_URL``.
    """

    def __init__(self, url: str, token: str | None = None, is_away: IsAway | None = None) -> None:
        self._url = http_url(url)
        self._token = token
        self._is_away = is_away
        self._connection: _Connection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def tools(self) -> list[str]:
        """Names of the tools that the token is offered.

        Raises:
            WorkbenchError: as of `call`.
        """
        result = await self._connect().ask(lambda client: client.list_tools(cache_mode="refresh"))
        return [tool.name for tool in result.tools]

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Run an operation.

        Raises:
            WorkbenchError: what the server raised; ``NO_SERVER`` when none answers; ``BAD_REPLY``.
        """
        from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult

        # `Client.call_tool` would first list the tools, and again for each operation that is not offered as a tool.
        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=plain(name, arguments)))
        result = await self._connect().ask(lambda client: client.session.send_request(request, CallToolResult))
        if result.is_error:
            raise _error_in(result)
        data: dict[str, Any] = result.structured_content or {}
        return data

    def _connect(self) -> _Connection:
        if self._connection is None or self._connection.is_broken:
            self._connection = _Connection(self._url, self._token, self._is_away)
        return self._connection


class _Connection:
    """An MCP connection in a task of its own: a break cancels that task, not the ones that use the connection."""

    def __init__(self, url: str, token: str | None, is_away: IsAway | None) -> None:
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._refusal: WorkbenchError | None = None
        self._failure: BaseException | None = None
        self._open = asyncio.create_task(self._hold_open(connection(url, token, is_away), url))

    @property
    def is_broken(self) -> bool:
        """Whether it cannot be used any more."""
        return self._open.done()

    async def ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Ask over the connection.

        Raises:
            WorkbenchError: the error of the connection or the reply.
        """
        from mcp.shared.exceptions import MCPError

        self._refusal = None
        task = asyncio.create_task(self._run(question))
        try:
            await asyncio.wait({task, self._open}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
        except MCPError as error:
            if isinstance(error.data, dict) and "code" in error.data:  # the server refused the request itself
                raise from_dict(error.data) from None
            self._failure = error
        except httpx2.HTTPError as error:
            self._failure = error
        except (ValueError, RuntimeError) as error:  # what the MCP client raises of a result that it cannot take
            raise self._refusal or bad_reply(f"a result that is no MCP ({error})") from error
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        raise self._refusal or no_server(self._failure or ConnectionError("the connection was closed"))

    async def close(self) -> None:
        """Close the connection."""
        self._closing.set()
        await asyncio.wait({self._open})

    async def _run(self, question: Callable[[Client], Awaitable[T]]) -> T:
        return await question(await asyncio.shield(self._ready))

    async def _hold_open(self, http: httpx2.AsyncClient, url: str) -> None:
        """Hold the connection open. The task's outermost handler: the next question raises the error that broke it."""
        from mcp.client import Client
        from mcp.client.streamable_http import streamable_http_client

        http.event_hooks = {**http.event_hooks, "response": [self._note_refusal]}
        try:
            async with http, Client(streamable_http_client(url, http_client=http)) as client:
                self._ready.set_result(client)
                await self._closing.wait()
        except Exception as error:
            self._failure = first_within(error)

    async def _note_refusal(self, response: httpx2.Response) -> None:
        """Keep the server's reason for refusing a request, which the MCP client does not report."""
        if response.status_code == 413:
            self._refusal = BadInput("TOO_LARGE", "The server does not take a request of this size.")
        elif response.status_code >= 400:
            with contextlib.suppress(ValueError):
                body = json.loads(await response.aread())
                if isinstance(body, dict) and isinstance(body.get("error"), dict) and "success" in body:
                    self._refusal = from_dict(body["error"])


def _error_in(result: CallToolResult) -> WorkbenchError:
    """The error in a tool's result: JSON in its text."""
    texts = [part.text for part in result.content if part.type == "text"]
    with contextlib.suppress(ValueError):
        body = json.loads("".join(texts))
        if isinstance(body, dict) and isinstance(body.get("error"), dict):
            return from_dict(body["error"])
    return bad_reply("an error without a code")
