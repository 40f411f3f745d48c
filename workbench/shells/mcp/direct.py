"""Calls of tools in the protocol without sessions, each served in the task of its HTTP request.

The MCP package serves every kind of message; for that it has two tasks and a queue for each request, which take longer
than most handlers do. A call needs them only if it takes long. What is not plainly a call is left to the package, so
that it alone decides what a mistake is called; and what runs behind a call is the package's either way: middleware,
handlers, and the shape of results.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.server.streamable_http import check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, InboundModernRoute, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCResponse, RequestId
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

METHOD = "tools/call"
SECONDS_UNATTENDED = 0.05
"""After so long it is watched whether the client of a call leaves."""
SECONDS_BETWEEN_EVENTS = 15.0
"""The most that a client waits for a sign that its call is open; the package's own limit."""

_PING = b": ping\r\n\r\n"
_JSON = (b"content-type", b"application/json")
_EVENTS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]
_VERSIONS = frozenset(version.encode() for version in MODERN_PROTOCOL_VERSIONS)
_ONCE = frozenset({b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"content-type", b"accept"})


class DirectCalls:
    """The ASGI application of an endpoint: serves plain calls itself, and leaves everything else to the package.

    Args:
        largest: bytes of the body of a plain call.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, largest: int) -> None:
        self._manager = manager
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _may_be_call(scope):
            await self._manager.asgi_app(scope, receive, send)
            return
        first = await receive()
        request = Request(scope, receive)
        call = _plain_call(request, first, self._largest)
        if call is None or self._has_headers(call):
            await self._manager.asgi_app(scope, _again(first, receive), send)
        else:
            await self._answer(call, _Exchange(request, call, send))

    def _has_headers(self, call: _Call) -> bool:
        """Whether headers may have to repeat arguments of a call, as the schema of its tool says."""
        schema_of = self._manager.app.get_tool_input_schema
        return schema_of is None or schema_of(call.params["name"]) is not None

    async def _answer(self, call: _Call, exchange: _Exchange) -> None:
        """Run a call until it has ended, or its client has left."""
        route = call.route
        connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        async with exchange:
            try:
                result = await serve_one(
                    self._manager.app,
                    exchange,
                    METHOD,
                    call.params,
                    connection=connection,
                    lifespan_state=self._manager._lifespan_state,
                )
            except Exception as error:  # as the package does: whatever it is becomes an error of the protocol
                await exchange.end(JSONRPCError(jsonrpc="2.0", id=call.id, error=modern_error_data(error)))
            else:
                await exchange.end(JSONRPCResponse(jsonrpc="2.0", id=call.id, result=result))


class _Call(NamedTuple):
    id: RequestId
    params: dict[str, Any]
    route: InboundModernRoute


def _may_be_call(scope: Scope) -> bool:
    """Whether a request is a call if its body is, too."""
    if scope["method"] != "POST":
        return False
    headers = dict(scope["headers"])
    if headers.get(b"mcp-protocol-version") not in _VERSIONS or headers.get(b"mcp-method") != METHOD.encode():
        return False
    return max(Counter(name for name, _ in scope["headers"] if name in _ONCE).values()) == 1


def _plain_call(request: Request, first: Message, largest: int) -> _Call | None:
    """The call in a request with its body in one message; None if anything about it is unusual."""
    body = first.get("body", b"")
    if first["type"] != "http.request" or first.get("more_body") or len(body) > largest:
        return None
    if not request.headers.get("content-type", "").lower().startswith("application/json"):
        return None
    if check_accept_headers(request) != (True, True):
        return None
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    match message:
        case {
            "jsonrpc": "2.0",
            "id": str() | int() as id_,
            "method": "tools/call",
            "params": {"name": str()} as params,
            **more,
        } if not more and not isinstance(id_, bool):
            route = classify_inbound_request(message, headers=request.headers)
            return _Call(id_, params, route) if isinstance(route, InboundModernRoute) else None
    return None


def _again(first: Message, receive: Receive) -> Receive:
    """`receive`, with a message that was received before."""
    messages = [first]

    async def received() -> Message:
        return messages.pop() if messages else await receive()

    return received


class _Exchange:
    """The answer to a call, which is JSON, or else a stream of events: if the call reports anything, or takes long.

    It is the `DispatchContext` of the package. As a context manager, it ends the block when the client leaves.
    """

    def __init__(self, request: Request, call: _Call, send: Send) -> None:
        self.transport = TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers)
        self.can_send_request = False
        self.request_id: RequestId = call.id
        self.message_metadata: MessageMetadata = ServerMessageMetadata(request_context=request)
        self.cancel_requested = anyio.Event()
        self._progress_token = progress_token_from_params(call.params)
        self._receive = request.receive
        self._send = send
        self._sending = asyncio.Lock()
        self._is_stream = False
        self._clock = asyncio.get_running_loop().time
        self._sent_at = self._clock()
        self._scope = anyio.CancelScope()
        self._attendance: asyncio.TimerHandle | asyncio.Task[None]

    async def __aenter__(self) -> None:
        self._scope.__enter__()
        self._attendance = asyncio.get_running_loop().call_later(SECONDS_UNATTENDED, self._attend)

    async def __aexit__(self, *error: Any) -> bool:
        self._attendance.cancel()
        return bool(self._scope.__exit__(*error))

    # What the handlers use.

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """There are no requests to clients in this protocol."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification with the answer."""
        body = dict(params) if params is not None else None
        await self._send_event(_event(JSONRPCNotification(jsonrpc="2.0", method=method, params=body)))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client has asked for it."""
        if self._progress_token is not None:
            given = {"total": total, "message": message}
            report = {name: value for name, value in given.items() if value is not None}
            token = {"progressToken": self._progress_token, "progress": progress}
            await self.notify("notifications/progress", token | report)

    # The answer.

    async def end(self, answer: JSONRPCResponse | JSONRPCError) -> None:
        """Send the answer itself."""
        self._attendance.cancel()
        async with self._sending:
            if self._is_stream:
                await self._send({"type": "http.response.body", "body": _event(answer), "more_body": False})
                return
            status = ERROR_CODE_HTTP_STATUS.get(answer.error.code, 200) if isinstance(answer, JSONRPCError) else 200
            body = _text(answer).encode()
            headers = [(b"content-length", b"%d" % len(body)), _JSON]
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            await self._send({"type": "http.response.body", "body": body})

    async def _send_event(self, event: bytes) -> None:
        async with self._sending:
            if not self._is_stream:
                await self._send({"type": "http.response.start", "status": 200, "headers": _EVENTS})
                self._is_stream = True
            self._sent_at = self._clock()
            await self._send({"type": "http.response.body", "body": event, "more_body": True})

    # Attendance to a call that takes long.

    def _attend(self) -> None:
        self._attendance = asyncio.ensure_future(self._attended())

    async def _attended(self) -> None:
        """Keep the answer open until the client leaves, which ends the call."""
        leaving = asyncio.ensure_future(self._left())
        try:
            while not leaving.done():
                quiet = self._clock() - self._sent_at
                if quiet >= SECONDS_BETWEEN_EVENTS:
                    await self._send_event(_PING)
                else:
                    await asyncio.wait({leaving}, timeout=SECONDS_BETWEEN_EVENTS - quiet)
            self._scope.cancel()
        finally:
            leaving.cancel()

    async def _left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _event(message: JSONRPCNotification | JSONRPCResponse | JSONRPCError) -> bytes:
    return f"event: message\r\ndata: {_text(message)}\r\n\r\n".encode()


def _text(message: JSONRPCNotification | JSONRPCResponse | JSONRPCError) -> str:
    return json.dumps(message.model_dump(mode="json", by_alias=True, exclude_none=True), separators=(",", ":"))
