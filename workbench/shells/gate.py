"""The door in front of every endpoint: which hosts and origins may knock, and whose token came along.

A web page that a person visits must not reach the servers (DNS rebinding, cross-site requests), so
Host and Origin are checked before anything else. The caller is left in `scope["state"]["caller"]`.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import BadInput, Refused, WorkbenchError
from workbench.model import Registration
from workbench.ops import ANONYMOUS, Caller

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
SUBPROTOCOL = "wb.v1"


class Gate:
    """ASGI middleware: refuses strangers' pages, and says who is asking."""

    def __init__(self, app: ASGIApp, workbench: Workbench) -> None:
        self.app = app
        self.workbench = workbench

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            _check_neighbour(headers)
            caller = await self._caller(headers)
        except WorkbenchError as error:
            await refuse(error, scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        if caller is not ANONYMOUS:
            scope["user"] = _principal(caller)
        await self.app(scope, receive, send)

    async def _caller(self, headers: Headers) -> Caller:
        token = _bearer(headers) or _subprotocol_token(headers)
        return ANONYMOUS if token is None else await self.workbench.identify(token)


async def refuse(error: WorkbenchError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a coded error; a WebSocket is refused before it is accepted."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": error.code})
        return
    headers = {"WWW-Authenticate": 'Bearer error="invalid_token"'} if error.status == 401 else None
    body = {"success": False, "error": error.as_dict()}
    await JSONResponse(body, error.status, headers)(scope, receive, send)


async def revoked(workbench: Workbench, caller: Caller) -> None:
    """Return as soon as an agent's admission was taken away: its live connections end then.

    Of a caller that is no agent it never returns.
    """
    if caller.agent is None:
        await asyncio.Event().wait()
    async with workbench.feed.subscribe("agent.revoked") as events:
        while True:
            state = await workbench.dispatch(caller, "registration_status", {})
            if state["status"] == Registration.REVOKED:
                return
            await anext(events)


def _check_neighbour(headers: Headers) -> None:
    if _host("//" + headers.get("host", "")) not in LOOPBACK:
        raise BadInput("BAD_HOST", "Workbench answers on loopback addresses only. Use http://127.0.0.1.")
    origin = headers.get("origin")
    if origin is not None and _host(origin) not in LOOPBACK:
        raise Refused("BAD_ORIGIN", "Web pages from elsewhere may not talk to Workbench.")


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _subprotocol_token(headers: Headers) -> str | None:
    offered = [part.strip() for part in headers.get("sec-websocket-protocol", "").split(",")]
    return next((part[7:] for part in offered if part.startswith("bearer.")), None)


def _principal(caller: Caller) -> AuthenticatedUser:
    """The MCP library binds a session to this, so that nobody can use another's session."""
    identity = caller.agent or caller.name
    return AuthenticatedUser(AccessToken(token="", client_id=identity, subject=identity, scopes=[]))
