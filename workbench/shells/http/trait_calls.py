"""``POST /agents/<name>/tools/call/<trait>``: calls of the traits of this project's agents.

Other nodes send a signed envelope, and learn how far the call is if they ask for it. A client with a token sends the
arguments as a JSON object, and gets the result as spec 5 prints it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from workbench.app import Workbench
from workbench.errors import BadInput
from workbench.koi.requests import FOLLOWED
from workbench.rules.wire import json_safety
from workbench.shells.gate import unless_ended
from workbench.shells.http.endpoints import caller_of, coded, read_body

T = TypeVar("T")


def routes(workbench: Workbench) -> list[Route]:
    """The endpoint."""

    async def call(request: Request) -> Response:
        address = request.path_params["name"], request.path_params["trait"]
        raw = await read_body(request, workbench.settings.max_koi_request_bytes)
        if "authorization" not in request.headers and FOLLOWED in request.headers.get("accept", ""):
            return await _follow(request, lambda send: workbench.answer_trait_call(*address, raw, send))
        if "authorization" not in request.headers:
            status, content = await _unless_left(request, workbench.answer_trait_call(*address, raw))
            return Response(content, status, media_type="application/json")
        caller, arguments = caller_of(request), _arguments(raw)
        work = unless_ended(workbench, caller, workbench.call_trait(caller, *address, arguments))
        outcome = await _unless_left(request, work)
        return JSONResponse({"result": outcome.result, "is_error": outcome.is_error, "content": outcome.content})

    return [Route("/agents/{name}/tools/call/{trait:path}", coded(call), methods=["POST"])]


Answer = tuple[int, bytes]
"""A status, and JSON."""


async def _follow(request: Request, answer: Callable[[Callable[[bytes], Awaitable[None]]], Any]) -> Response:
    """The answer to a call that its caller follows: at once with the first report, or alone if that comes first."""
    reports: asyncio.Queue[bytes] = asyncio.Queue(1)
    working = asyncio.create_task(_unless_left(request, answer(reports.put)))
    report = await _next(reports, working)
    if report is None:
        status, content = await working
        return Response(content, status, media_type="application/json")
    return StreamingResponse(_lines(report, reports, working), media_type=FOLLOWED)


async def _lines(
    report: bytes | None, reports: asyncio.Queue[bytes], working: asyncio.Task[Answer]
) -> AsyncIterator[bytes]:
    """The reports, and the answer at the end. The call is cancelled if nobody reads on."""
    try:
        while report is not None:
            yield report + b"\n"
            report = await _next(reports, working)
        yield (await working)[1]
    except ClientDisconnect:
        return
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def _next(reports: asyncio.Queue[bytes], working: asyncio.Task[Answer]) -> bytes | None:
    """The next report; None once the call has ended."""
    waiting = asyncio.create_task(reports.get())
    try:
        await asyncio.wait({waiting, working}, return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() and not working.done() else None
    except asyncio.CancelledError:
        working.cancel()
        raise
    finally:
        waiting.cancel()


def _arguments(raw: bytes) -> dict[str, Any]:
    try:
        arguments = json_safety.decode(raw or b"{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise BadInput("BAD_MESSAGE", "The body must be a JSON object with the arguments.")
    return arguments


async def _unless_left(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client closes the request.

    When the servers stop, they end calls by themselves, so that their callers get a coded answer.

    Raises:
        ClientDisconnect: the client has left.
    """
    working, leaving = asyncio.create_task(work), asyncio.create_task(_left(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return await working
        raise ClientDisconnect
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    """Return when the client closes the request."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
