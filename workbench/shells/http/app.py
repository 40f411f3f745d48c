"""HTTP: `/health`, `POST /api/ops/<name>`, `GET /api/ops`, the feed as `GET /api/events`, and the endpoints of `rest`
and of `personalities`.

Responses are `{"success": true, "data": …}` or `{"success": false, "error": {code, message, details}}`; endpoints
without a prefix return plain data (see `rest`). `GET /api/openapi.json` describes all of it to admitted callers.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from functools import cache
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Unauthenticated, WorkbenchError, WrongMethod
from workbench.ops import Caller, Op, RestRoute
from workbench.rules.wire import json_safety
from workbench.shells.gate import HEALTH, failure, revoked, stopped, unless_ended
from workbench.shells.http import openapi, personalities, rest, telemetry, trait_calls
from workbench.shells.http.endpoints import Endpoint, caller_of, coded, read_body

SSE_WAIT_SECONDS = 15.0

log = logging.getLogger(__name__)

Shape = Callable[[RestRoute, dict[str, Any]], Response]


def routes(workbench: Workbench, stopping: asyncio.Event | None = None) -> list[Route]:
    """The HTTP endpoints of a workbench.

    Args:
        stopping: set when the servers are about to stop; waiting requests are then answered.
    """
    shell = _Shell(workbench, stopping or asyncio.Event())
    return [
        *(Route(path, coded(shell.health)) for path in HEALTH),
        Route("/api/ops", coded(shell.catalogue)),
        Route("/api/ops/{name:path}", coded(shell.call), methods=["POST"]),
        Route("/api/events", coded(shell.events)),
        Route("/api/openapi.json", coded(shell.description)),
        *personalities.routes(workbench),
        *trait_calls.routes(workbench),
        *telemetry.routes(workbench),
        *shell.rest_routes("", _plain),
        *shell.rest_routes("/api", lambda endpoint, result: (_success if endpoint.enveloped else JSONResponse)(result)),
    ]


class _Shell:
    """The handlers of the endpoints."""

    def __init__(self, workbench: Workbench, stopping: asyncio.Event) -> None:
        self._workbench = workbench
        self._stopping = stopping
        self._described = cache(lambda: openapi.document(workbench.catalogue))

    async def health(self, request: Request) -> Response:
        """Say that the server answers, and identify it by its nonce."""
        server = self._workbench.server
        return JSONResponse({"status": "ok", "nonce": server.nonce if server else None})

    async def catalogue(self, request: Request) -> Response:
        """The operations that the caller may call."""
        caller = caller_of(request)
        ops = [op for op in self._workbench.catalogue.values() if op.permits(caller)]
        described = [{"name": op.name, "help": op.help, "input_schema": op.input_schema} for op in ops]
        return _success({"operations": described})

    async def description(self, request: Request) -> Response:
        """The OpenAPI document, for every caller that may use `whoami`."""
        await self._asked(request, "whoami", {})
        return JSONResponse(self._described())

    async def call(self, request: Request) -> Response:
        """Any operation, with the body as its arguments."""
        arguments = await self._body(request)
        return _success(await self._asked(request, request.path_params["name"], arguments, decoded=True))

    def rest_routes(self, prefix: str, shape: Shape) -> list[Route]:
        """The endpoints of `rest` under a prefix, with their results in a shape."""
        operations = rest.by_path(self._workbench.catalogue)
        return [
            Route(prefix + path, coded(self._at(methods, shape)), methods=list(methods))
            for path, methods in operations.items()
        ]

    def _at(self, methods: Mapping[str, Op], shape: Shape) -> Endpoint:
        async def answer(request: Request) -> Response:
            op, query = (
                methods["GET" if request.method == "HEAD" else request.method],
                request.query_params.multi_items(),
            )
            assert op.rest is not None
            arguments = rest.arguments(op, request.path_params, query, await self._body(request))
            return shape(op.rest, await self._asked(request, op.name, arguments))

        return answer

    async def events(self, request: Request) -> Response:
        """A page of the feed, or a stream if the client accepts one.

        `Last-Event-ID` resumes a stream; without it and `after`, a stream begins with what happens next.
        """
        listing = self._workbench.catalogue["list_events"]
        arguments = rest.from_query(listing, request.query_params.multi_items())
        if resumed := request.headers.get("last-event-id"):
            arguments["after"] = resumed
        is_stream = "text/event-stream" in request.headers.get("accept", "")
        if is_stream:
            arguments.setdefault("after", None)
        first = await self._asked(request, "list_events", arguments)
        if not is_stream:
            return _success(first)
        caller, held = caller_of(request), AsyncExitStack()
        if caller.agent is not None:
            assert request.client is not None
            client_id = f"{request.client.host}:{request.client.port}"
            await held.enter_async_context(self._workbench.connected(caller, "sse", client_id))
        return _Stream(self._stream(caller, arguments, first), held)

    async def _stream(
        self, caller: Caller, arguments: dict[str, Any], page: dict[str, Any]
    ) -> AsyncIterator[ServerSentEvent]:
        ends = [asyncio.create_task(revoked(self._workbench, caller)), asyncio.create_task(self._stopping.wait())]
        try:
            while not any(end.done() for end in ends):
                for event in page["events"]:
                    yield ServerSentEvent(json.dumps(event), event=event["kind"], id=str(event["id"]))
                waiting = {**arguments, "after": page["next_after"], "wait_seconds": SSE_WAIT_SECONDS}
                reading = asyncio.create_task(self._next_page(caller, waiting))
                try:
                    await asyncio.wait({*ends, reading}, return_when=asyncio.FIRST_COMPLETED)
                    if not any(end.done() for end in ends):
                        page = await reading
                finally:
                    reading.cancel()
        except Unauthenticated:
            return  # the token became invalid, and this noticed it first
        except WorkbenchError as error:
            yield ServerSentEvent(json.dumps(error.as_dict()), event="error")
        finally:
            for end in ends:
                end.cancel()

    async def _next_page(self, caller: Caller, arguments: dict[str, Any]) -> dict[str, Any]:
        """The next page of events, with the caller's present permissions."""
        return await self._workbench.dispatch(await self._workbench.renewed(caller), "list_events", arguments)

    async def _asked(
        self, request: Request, name: str, arguments: dict[str, Any], *, decoded: bool = False
    ) -> dict[str, Any]:
        """Run an operation for the caller of a request."""
        caller = caller_of(request)
        work = self._workbench.dispatch(caller, name, arguments, decoded=decoded)
        operation = self._workbench.catalogue.get(name)
        if operation is None or not operation.waits(arguments):
            return await work
        # A request that waits ends when its client leaves; any other is completed.
        return await self._attended(request, unless_ended(self._workbench, caller, work))

    async def _attended(self, request: Request, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        """The result of `work`, unless the client leaves or the servers stop first.

        Raises:
            ClientDisconnect: the client has left. Unavailable: ``NO_SERVER``.
        """
        working = asyncio.create_task(work)
        ends = [asyncio.create_task(_gone(request)), asyncio.create_task(self._stopping.wait())]
        try:
            await asyncio.wait({working, *ends}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return await working
            raise stopped() if self._stopping.is_set() else ClientDisconnect
        finally:
            for task in (working, *ends):
                task.cancel()

    async def _body(self, request: Request) -> dict[str, Any]:
        """The request body as an object; an empty body is an empty object."""
        raw = await read_body(request, self._workbench.settings.max_frame_bytes)
        try:
            arguments = json_safety.decode(raw or b"{}")
        except json_safety.NotJson:
            raise BadInput("BAD_MESSAGE", "The body is not JSON. Send an object with the arguments.") from None
        except ValueError as error:
            raise BadInput("INVALID_ARGUMENTS", f"The arguments are not JSON: {error}.", problems=[]) from None
        if not isinstance(arguments, dict):
            raise BadInput("BAD_MESSAGE", "The body must be a JSON object with the arguments.")
        return arguments


class _Stream(EventSourceResponse):
    """A stream of events that ends cleanly, also when uvicorn cancels it; `held` is closed at the end."""

    def __init__(self, content: AsyncIterator[ServerSentEvent], held: AsyncExitStack) -> None:
        super().__init__(content)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            try:
                await super().__call__(scope, receive, send)
            except asyncio.CancelledError:  # uvicorn no longer waits
                await send({"type": "http.response.body", "body": b""})


def _plain(endpoint: RestRoute, result: dict[str, Any]) -> Response:
    """A result as the clients of spec 1's server expect it."""
    if endpoint.rows is None:
        return JSONResponse(result)
    values = {"X-Total-Count": result.get("total"), "X-Next-Cursor": result.get("next_cursor")}
    headers = {name: str(value) for name, value in values.items() if value is not None}
    return JSONResponse(result[endpoint.rows], headers=headers)


async def no_such_endpoint(request: Request, error: Exception) -> Response:
    """The coded response for an endpoint, or a method of one, that does not exist."""
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow")
    if request.url.path == "/ws" or request.url.path.startswith("/ws/"):
        return failure(NotFound("NO_SUCH_ENDPOINT", "This path is for WebSockets: connect to /ws/ and a name."))
    if allowed is None:
        return failure(NotFound("NO_SUCH_ENDPOINT", "No such endpoint. GET /api/openapi.json lists them."))
    answer = failure(
        WrongMethod(
            "METHOD_NOT_ALLOWED",
            f"This endpoint takes {allowed}, not {request.method}.",
            allowed=sorted(allowed.split(", ")),
        )
    )
    answer.headers["Allow"] = allowed
    return answer


def _success(data: dict[str, Any]) -> Response:
    return JSONResponse({"success": True, "data": data})


async def _gone(request: Request) -> None:
    """Return when the client leaves."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
