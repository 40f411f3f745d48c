"""Calls of tools over HTTP in the protocol without sessions, each sent and answered in the task of its caller.

There, a call is one exchange, so that none of the tasks and queues are needed with which the MCP package tells the
messages of a session apart. They take longer than all else that is done for a call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

import anyio.abc
import httpx2
from mcp.shared.dispatcher import CallOptions, Dispatcher, OnNotify, OnNotifyIntercept, OnRequest, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from workbench.upstream.http_posts import Post

ACCEPTED = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class HttpCalls(Dispatcher[Any]):
    """A dispatcher that sends the calls of tools, and leaves everything else to another one.

    Args:
        others: sends everything else; calls in protocols with sessions, and those that the server redirects, too.
        post: sends the calls.
        largest: bytes of an event from the server; `post` limits other answers.
    """

    def __init__(self, others: Dispatcher[Any], post: Post, largest: int) -> None:
        self._others = others
        self._post = post
        self._largest = largest
        self._numbers = count(1)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """See `Outbound.send_raw_request`. Cancelling this closes the exchange, which cancels the call."""
        options = opts or {}
        headers = options.get("headers", {})
        if method != "tools/call" or headers.get(MCP_PROTOCOL_VERSION_HEADER) not in MODERN_PROTOCOL_VERSIONS:
            return await self._others.send_raw_request(method, params, opts)
        progress = options.get("on_progress")
        content = _request(f"call-{next(self._numbers)}", params or {}, reports=progress is not None)
        try:
            async with self._post(content, {**ACCEPTED, **headers}) as response:
                if not response.is_redirect:
                    return _result(await self._answer(response, progress))
        except httpx2.HTTPError as error:
            raise MCPError(CONNECTION_CLOSED, f"{type(error).__name__}: {error}") from error
        return await self._others.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """See `Outbound.notify`."""
        await self._others.notify(method, params, opts)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """See `Dispatcher.run`."""
        await self._others.run(on_request, on_notify, on_notify_intercept, task_status=task_status)

    async def _answer(self, response: httpx2.Response, progress: ProgressFnT | None) -> Any:
        """The message that answers a call.

        Raises:
            MCPError: there is none.
        """
        kind = response.headers.get("content-type", "").lower()
        if response.is_error:
            return await _refusal(response, kind)
        if kind.startswith("text/event-stream"):
            return await self._streamed(response, progress)
        if not kind.startswith("application/json"):
            raise MCPError(INVALID_REQUEST, f"Unexpected content type: {kind}")
        try:
            return json.loads(await response.aread())
        except (httpx2.StreamError, ValueError, RecursionError) as error:
            raise MCPError(PARSE_ERROR, f"Failed to parse JSON response: {error}") from None

    async def _streamed(self, response: httpx2.Response, progress: ProgressFnT | None) -> Any:
        """The message that ends a stream. Of those before it, only reports of progress belong there."""
        try:
            async for event in httpx2.EventSource(response, max_event_size=self._largest):
                match message := json.loads(event.data or "null"):
                    case {"method": "notifications/progress", "params": {"progress": int() | float() as done, **more}}:
                        if progress is not None:
                            await progress(done, *_rest(more))
                    case {"id": _}:
                        return message
        except httpx2.SSEError as error:
            raise MCPError(CONNECTION_CLOSED, f"SSE stream failed: {error}") from None
        except (ValueError, RecursionError) as error:
            raise MCPError(PARSE_ERROR, f"Failed to parse SSE message: {error}") from None
        raise MCPError(CONNECTION_CLOSED, "SSE stream ended without a response")


def _request(number: str, params: Mapping[str, Any], *, reports: bool) -> bytes:
    """A call as JSON-RPC; its number is also its token if it asks for reports of progress."""
    meta = {**params.get("_meta", {}), "progressToken": number} if reports else params.get("_meta", {})
    message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {**params, "_meta": meta}}
    return json.dumps(message, separators=(",", ":")).encode()


def _result(message: Any) -> dict[str, Any]:
    """The result in an answer.

    Raises:
        MCPError: the error in it, or that it is no answer.
    """
    match message:
        case {"result": dict() as result}:
            return result
        case {"error": {"code": int() as code, "message": str() as text, **more}}:
            raise MCPError(code, text, more.get("data"))
    raise MCPError(PARSE_ERROR, "Failed to parse JSON response: it is no JSON-RPC response")


async def _refusal(response: httpx2.Response, kind: str) -> Any:
    """The error in the body of a response whose status is one, if it is there.

    Raises:
        MCPError: what the status says.
    """
    if kind.startswith("application/json"):
        try:
            message = json.loads(await response.aread())
        except (httpx2.StreamError, ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and "error" in message:
            return message
    if response.status_code == 404:
        raise MCPError(METHOD_NOT_FOUND, "Not Found")
    raise MCPError(INTERNAL_ERROR, "Server returned an error response")


def _rest(report: Mapping[Any, Any]) -> tuple[float | None, str | None]:
    """The total and the message of a report of progress, if they are such."""
    total, message = report.get("total"), report.get("message")
    return total if isinstance(total, int | float) else None, message if isinstance(message, str) else None
