"""The door in front of every endpoint: which hosts and origins may knock, how often, and whose token came along.

A web page that a person visits must not reach the servers (DNS rebinding, cross-site requests), so
Host and Origin are checked before anything else. The caller is left in `scope["state"]["caller"]`.

Only what `LOOPBACK` names is this machine. The other addresses of 127.0.0.0/8 count as
elsewhere: nobody reaches a person's server by them unless something forwards, and what forwards
may speak for a stranger.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import BadInput, Refused, TooMany, Unauthenticated, WorkbenchError
from workbench.model import Level
from workbench.ops import ANONYMOUS, Caller
from workbench.rules import access
from workbench.rules.access import LOOPBACK
from workbench.rules.token_bucket import TokenBucket
from workbench.settings import Settings

T = TypeVar("T")

SUBPROTOCOL = "wb.v1"
ACCESS_HEADER = "X-Workbench-Access"
HEALTH = ("/health", "/healthz")
CLIENT_LENGTH = 200
REMEMBERED_ADDRESSES = 4_096
ENDS = {"agent.revoked": "REVOKED", "agent.deleted": "REVOKED", "agent.token_issued": "TOKEN_REPLACED"}
"""What makes a token good for nothing, and how that is called."""


class Gate:
    """ASGI middleware: refuses strangers' pages and floods, and says who is asking.

    Args:
        clock: seconds that only go forward.
    """

    def __init__(self, app: ASGIApp, workbench: Workbench, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self.workbench = workbench
        self._strangers = Allowance(workbench.settings.max_anonymous_requests_per_minute, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            _check_neighbour(headers, _own_names(scope, self.workbench.settings))
            caller = await self._caller(scope, headers)
        except WorkbenchError as error:
            await refuse(error, scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        if not _is_stranger(caller):
            scope["user"] = _principal(caller)
        await self.app(scope, receive, send)

    async def _caller(self, scope: Scope, headers: Headers) -> Caller:
        """Who asks, from where and with what; who shows no token, or a wrong one, may do so only so often."""
        address = _peer(scope)
        try:
            _check_access(address, headers, self.workbench.settings)
            known = await self._identified(headers)
        except Unauthenticated:
            self._strangers.spend(address)
            raise
        if _is_stranger(known) and _is_counted(scope):
            self._strangers.spend(address)
        return replace(known, address=address, client=client_name(headers.get("user-agent", "")))

    async def _identified(self, headers: Headers) -> Caller:
        token = _bearer(headers) or _offered(headers, "bearer.")
        return ANONYMOUS if token is None else await self.workbench.identify(token)


class Allowance:
    """How many requests each address has left; the one heard of longest ago is forgotten when there are too many."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._paces: OrderedDict[str | None, TokenBucket] = OrderedDict()

    def spend(self, address: str | None) -> None:
        """Count a request.

        Raises:
            TooMany: ``RATE_LIMITED``.
        """
        now = self._clock()
        pace = self._paces.setdefault(address, TokenBucket(self._per_minute / 60, 60, now))
        self._paces.move_to_end(address)
        if len(self._paces) > REMEMBERED_ADDRESSES:
            self._paces.popitem(last=False)
        if not pace.take(now):
            wait = math.ceil(60 / self._per_minute)
            raise TooMany(
                "RATE_LIMITED",
                f"Too many requests without a valid token. Send your token, or wait {wait} s between them.",
                retry_after_seconds=wait,
            ) from None


async def refuse(error: WorkbenchError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a coded error; a WebSocket is refused before it is accepted, likewise, if the server can do that."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": error.code})
        return
    await failure(error)(scope, receive, send)


def failure(error: WorkbenchError) -> JSONResponse:
    """The answer that tells of an error: `{"success": false, "error": {code, message, details, status}}`."""
    headers = {}
    if error.code == "INVALID_TOKEN":
        headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
    if isinstance(error, TooMany):
        headers["Retry-After"] = str(error.details["retry_after_seconds"])
    return JSONResponse({"success": False, "error": error.as_dict()}, error.status, headers)


def check_address(settings: Settings) -> None:
    """Whether the servers may bind the address they are to bind.

    Raises:
        Refused: ``REMOTE_NOT_ALLOWED``. Unauthenticated: ``ACCESS_TOKEN_REQUIRED``.
    """
    if settings.host in LOOPBACK:
        return
    if not settings.allow_remote:
        raise _not_remote()
    if not _secret(settings):
        raise Unauthenticated(
            "ACCESS_TOKEN_REQUIRED", f"To serve on {settings.host}, set access_token (WORKBENCH_ACCESS_TOKEN) too."
        )


def client_name(client: str) -> str | None:
    """What a client calls itself, fit to be shown: printable, and not long."""
    return "".join(c for c in client if c.isprintable())[:CLIENT_LENGTH].strip() or None


async def revoked(workbench: Workbench, caller: Caller) -> str:
    """Why, as soon as an agent's token is good for nothing any more: its live connections end then.

    ``REVOKED`` (or deleted), or ``TOKEN_REPLACED``. Of a caller that is no agent it never returns.
    """
    if caller.agent is None:
        await asyncio.Event().wait()
    async with workbench.feed.subscribe(*ENDS, subject=f"agent:{caller.agent}") as events:
        try:
            await workbench.renewed(caller)
        except Unauthenticated:
            return "REVOKED"
        return ENDS[(await anext(events)).kind]


async def unless_revoked(workbench: Workbench, caller: Caller, work: Coroutine[Any, Any, T]) -> T:
    """What `work`, which may wait, answers; it is ended when the caller's token becomes good for nothing.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``.
    """
    working = asyncio.create_task(work)
    end = asyncio.create_task(revoked(workbench, caller))
    try:
        await asyncio.wait({working, end}, return_when=asyncio.FIRST_COMPLETED)
        if end.done():
            raise Unauthenticated("INVALID_TOKEN", f"The token was revoked or replaced: {await end}.")
        answer = await working
        await workbench.renewed(caller)  # what woke it may be the very revocation
        return answer
    finally:
        working.cancel()
        end.cancel()


def _own_names(scope: Scope, settings: Settings) -> frozenset[str]:
    """The hosts this server is known by; where others may come, also the address that they came to.

    That is what they were told, or one of all the machine's addresses; a name that a page made point here is neither.
    """
    if not settings.allow_remote:
        return LOOPBACK
    server = scope.get("server")
    return LOOPBACK | {settings.host.lower()} | ({server[0]} if server else set())


def _check_neighbour(headers: Headers, own: frozenset[str]) -> None:
    if _host("//" + headers.get("host", "")) not in own:
        raise BadInput("BAD_HOST", "Workbench answers to its own addresses only. Use http://127.0.0.1.")
    origin = headers.get("origin")
    if origin is not None and _host(origin) not in own:
        raise Refused("BAD_ORIGIN", "Web pages from elsewhere may not talk to Workbench.")


def _check_access(address: str | None, headers: Headers, settings: Settings) -> None:
    """Who comes from elsewhere brings the access token of this server, besides a token of its own."""
    if address is None or address in LOOPBACK:
        return
    secret = _secret(settings)
    if not settings.allow_remote or not secret:
        raise _not_remote()
    given = headers.get(ACCESS_HEADER) or _offered(headers, "access.") or ""
    if not access.same_token(given, secret):
        raise Unauthenticated(
            "ACCESS_TOKEN_REQUIRED",
            f"From another machine, send the server's access token as {ACCESS_HEADER} "
            "(WebSocket: or as the subprotocol access.<token>).",
        )


def _secret(settings: Settings) -> str | None:
    return settings.access_token.get_secret_value() if settings.access_token else None


def _not_remote() -> Refused:
    return Refused(
        "REMOTE_NOT_ALLOWED",
        "Workbench serves this machine only. To serve others, set allow_remote and access_token.",
    )


def _is_stranger(caller: Caller) -> bool:
    """Nobody who is known by a token, be it of an agent that still waits."""
    return caller.level is Level.ANONYMOUS and caller.agent is None


def _is_counted(scope: Scope) -> bool:
    """A WebSocket says who it is once it is open, and has limits of its own; asking how the server is must always work,
    because one that is not found well is taken for one that is gone."""
    return scope["type"] == "http" and scope["path"] not in HEALTH


def _peer(scope: Scope) -> str | None:
    client = scope.get("client")
    return str(client[0]) if client else None


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _offered(headers: Headers, prefix: str) -> str | None:
    """What a WebSocket client offered as a subprotocol: browsers cannot send headers."""
    offered = [part.strip() for part in headers.get("sec-websocket-protocol", "").split(",")]
    return next((part.removeprefix(prefix) for part in offered if part.startswith(prefix)), None)


def _principal(caller: Caller) -> AuthenticatedUser:
    """The MCP library binds a session to this, so that nobody can use another's session."""
    identity = caller.agent or caller.name
    return AuthenticatedUser(AccessToken(token="", client_id=identity, subject=identity, scopes=[]))
