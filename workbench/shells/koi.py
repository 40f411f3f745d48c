"""The endpoints of a KOI node, under ``/koi-net``: signed envelopes in, signed envelopes or errors of the protocol out.

Who sends them is decided by their signatures, not by tokens.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from workbench.app import Workbench
from workbench.koi.requests import BROADCAST, BUNDLES, MANIFESTS, POLL, RIDS
from workbench.shells.gate import KOI
from workbench.shells.http.endpoints import Endpoint, coded, read_body


def routes(workbench: Workbench) -> list[Route]:
    """The five endpoints, and who this node is."""

    async def identify(request: Request) -> Response:
        return JSONResponse(workbench.koi_identity())

    endpoints = (
        Route(f"{KOI}{path}", coded(_answering(workbench, path)), methods=["POST"])
        for path in (BROADCAST, POLL, RIDS, MANIFESTS, BUNDLES)
    )
    return [Route(KOI, coded(identify), methods=["GET"]), *endpoints]


def _answering(workbench: Workbench, path: str) -> Endpoint:
    async def answer(request: Request) -> Response:
        raw = await read_body(request, workbench.settings.max_koi_request_bytes)
        status, content = await workbench.koi_request(path, raw)
        return Response(content, status, media_type="application/json")

    return answer
