"""REST: `/health`, `POST /api/ops/<name>`, `GET /api/ops` and the feed as `GET /api/events`.

Answers are `{"success": true, "data": …}` or `{"success": false, "error": {code, message, details}}`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from workbench.app import Workbench
from workbench.errors import BadInput, Unavailable, WorkbenchError
from workbench.ops import Caller
from workbench.shells.gate import revoked

SSE_WAIT_SECONDS = 15.0

log = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]


def routes(workbench: Workbench) -> list[Route]:
    """The HTTP endpoints of a workbench."""

    async def health(request: Request) -> Response:
        server = workbench.server
        return JSONResponse({"status": "ok", "nonce": server.nonce if server else None})

    async def catalogue(request: Request) -> Response:
        level = _caller(request).level
        ops = [op for op in workbench.catalogue.values() if op.allow <= level]
        described = [{"name": op.name, "help": op.help, "input_schema": op.input_schema} for op in ops]
        return _success({"operations": described})

    async def call(request: Request) -> Response:
        arguments = await _body(request, workbench.settings.max_frame_bytes)
        return _success(await workbench.dispatch(_caller(request), request.path_params["name"], arguments))

    async def events(request: Request) -> Response:
        arguments = _event_arguments(request)
        first = await workbench.dispatch(_caller(request), "list_events", arguments)
        if "text/event-stream" not in request.headers.get("accept", ""):
            return _success(first)
        return EventSourceResponse(_stream(workbench, _caller(request), arguments, first))

    return [
        Route("/health", _coded(health)),
        Route("/healthz", _coded(health)),
        Route("/api/ops", _coded(catalogue)),
        Route("/api/ops/{name:path}", _coded(call), methods=["POST"]),
        Route("/api/events", _coded(events)),
    ]


def _coded(endpoint: Endpoint) -> Endpoint:
    """The outermost handler: whatever goes wrong becomes a coded answer."""

    async def guarded(request: Request) -> Response:
        try:
            return await endpoint(request)
        except WorkbenchError as error:
            return _failure(error)
        except asyncio.CancelledError:  # uvicorn stops, and waits no longer
            return _failure(Unavailable("NO_SERVER", "The server was stopped. Ask again when one runs."))
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return _failure(WorkbenchError("INTERNAL_ERROR", "The server failed; its log says how."))

    return guarded


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


def _success(data: dict[str, Any]) -> Response:
    return JSONResponse({"success": True, "data": data})


def _failure(error: WorkbenchError) -> Response:
    return JSONResponse({"success": False, "error": error.as_dict()}, error.status)


async def _body(request: Request, limit: int) -> dict[str, Any]:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > limit:
            raise BadInput("TOO_LARGE", f"A request may have at most {limit:,} bytes.")
    try:
        arguments = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        raise BadInput("BAD_MESSAGE", "The body is not JSON. Send an object with the arguments.") from None
    if not isinstance(arguments, dict):
        raise BadInput("BAD_MESSAGE", "The body is a JSON object with the arguments.")
    return arguments


def _event_arguments(request: Request) -> dict[str, Any]:
    """The query string as arguments of `list_events`; `Last-Event-ID` resumes a stream."""
    query = dict(request.query_params)
    arguments: dict[str, Any] = {k: v for k, v in query.items() if k != "kinds"}
    if "kinds" in query:
        arguments["kinds"] = query["kinds"].split(",")
    if resumed := request.headers.get("last-event-id"):
        arguments["after"] = resumed
    return arguments


async def _stream(
    workbench: Workbench, caller: Caller, arguments: dict[str, Any], page: dict[str, Any]
) -> AsyncIterator[ServerSentEvent]:
    over = asyncio.create_task(revoked(workbench, caller))
    try:
        while not over.done():
            for event in page["events"]:
                yield ServerSentEvent(json.dumps(event), event=event["kind"], id=str(event["id"]))
            waiting = {**arguments, "after": page["next_after"], "wait_seconds": SSE_WAIT_SECONDS}
            asked = asyncio.create_task(workbench.dispatch(caller, "list_events", waiting))
            try:
                await asyncio.wait({over, asked}, return_when=asyncio.FIRST_COMPLETED)
                if not over.done():
                    page = await asked
            finally:
                asked.cancel()
    finally:
        over.cancel()
