"""OTLP of the programs of agents: `POST /v1/logs`, `/v1/traces` and `/v1/metrics`, as JSON or protobuf.

An agent proves itself by its own token, as a bearer; the answer is empty, as OTLP wants it.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from workbench.app import Workbench
from workbench.rules.telemetry.received import Signal
from workbench.shells.http.endpoints import Endpoint, caller_of, coded, read_body

SIGNALS: tuple[Signal, ...] = ("logs", "traces", "metrics")


def routes(workbench: Workbench) -> list[Route]:
    """The endpoints."""
    turn = asyncio.Lock()
    return [Route(f"/v1/{name}", coded(_receiving(workbench, name, turn)), methods=["POST"]) for name in SIGNALS]


def _receiving(workbench: Workbench, signal: Signal, turn: asyncio.Lock) -> Endpoint:
    """An endpoint that takes one request at a time: what one tells may need a hundred times its bytes of memory."""

    async def receive(request: Request) -> Response:
        form = request.headers.get("content-type", "")
        coding = request.headers.get("content-encoding", "").lower()
        workbench.require_agent(caller_of(request))
        raw = await read_body(request, workbench.settings.max_telemetry_bytes)
        async with turn:
            await workbench.receive_telemetry(caller_of(request), signal, raw, form, coding)
        is_json = form.startswith("application/json")
        return Response(b"{}" if is_json else b"", media_type=form)

    return receive
