"""What HTTP endpoints have in common: coded responses for every error, and bodies of limited size."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from workbench.errors import BadInput, WorkbenchError
from workbench.ops import Caller
from workbench.shells.gate import failure, stopped

Endpoint = Callable[[Request], Awaitable[Response]]

log = logging.getLogger(__name__)


def coded(endpoint: Endpoint) -> Endpoint:
    """The outermost handler of an endpoint: turns every error into a coded response."""

    async def guarded(request: Request) -> Response:
        try:
            return await endpoint(request)
        except WorkbenchError as error:
            return failure(error)
        except ClientDisconnect:
            return Response()  # the client has left
        except asyncio.CancelledError:  # uvicorn stops, and no longer waits
            return failure(stopped())
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return failure(WorkbenchError("INTERNAL_ERROR", "The server failed; see its log."))

    return guarded


def caller_of(request: Request) -> Caller:
    """The caller that the gate has identified."""
    caller: Caller = request.state.caller
    return caller


async def read_body(request: Request, most: int) -> bytes:
    """The body of a request.

    Raises:
        BadInput: ``TOO_LARGE``: it has more than `most` bytes.
    """
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > most:
            raise BadInput("TOO_LARGE", f"A request may have at most {most:,} bytes.")
    return bytes(raw)
