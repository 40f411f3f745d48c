"""The gate in front of every endpoint: checks Host and Origin, limits requests, and identifies the caller.

A web page that a person visits must not reach the servers (DNS rebinding, cross-site requests), so Host and Origin are
checked first. The caller is stored in `scope["state"]["caller"]`.

Only the addresses in `LOOPBACK` count as this machine. Other addresses of 127.0.0.0/8 count as remote: in practice only
forwarders use them, possibly for remote clients.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from workbench.app import Workbench
from workbench.client.address import PERSON_HEADER, SESSION_HEADER
from workbench.errors import BadInput, Refused, TooMany, Unauthenticated, Unavailable, WorkbenchError
from workbench.model import Level
from workbench.ops import ANONYMOUS, Caller
from workbench.rules import access
from workbench.rules.access import LOOPBACK
from workbench.rules.models.upstream import error_body, token_in
from workbench.rules.token_bucket import TokenBucket
from workbench.shells.connections import PEER, ConnectedPeer
from workbench.shells.origins import jupyter_origins, parse_origin
from workbench.state.settings import Settings
from workbench.trust.withheld import set_but_not_trusted

T = TypeVar("T")

SUBPROTOCOL = "wb.v1"
ACCESS_HEADER = "X-Workbench-Access"
HEALTH = ("/health", "/healthz")
MODELS = "/models"
"""Before the endpoints that stand in for providers of models; their requests carry a token for nothing else."""
KOI = "/koi-net"
"""Before the endpoints of a KOI node."""
_TRAIT_CALL = re.compile(r"/agents/[^/]+/tools/call/")
CLIENT_LENGTH = 200
CLIENT_NAMES = 100
"""Names that are kept as they were made fit: every request has one, and most are the same."""
REMEMBERED_ADDRESSES = 4_096


class RequestGate:
    """ASGI middleware: refuses foreign web pages and floods, and identifies the caller.

    Args:
        clock: a monotonic clock, in seconds.
        stopping: set when the servers stop: requests are then refused instead of run.
    """

    def __init__(
        self,
        app: ASGIApp,
        workbench: Workbench,
        clock: Callable[[], float] = time.monotonic,
        stopping: asyncio.Event | None = None,
    ) -> None:
        self.app = app
        self.workbench = workbench
        self._stopping = stopping or asyncio.Event()
        self._strangers = Allowance(workbench.settings.max_anonymous_requests_per_minute, clock)
        self._nodes = Allowance(workbench.settings.max_koi_requests_per_minute, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            _check_host(headers, _own_names(scope, self.workbench.settings), scope)
            if self._stopping.is_set():
                raise server_stopping()
            caller = await self._caller(scope, headers)
            _check_room(scope, caller)
        except WorkbenchError as error:
            await refuse(error, scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self.app(scope, receive, send)

    async def _caller(self, scope: Scope, headers: Headers) -> Caller:
        """The caller, with its address and program. Requests without a valid token are limited per address."""
        address, is_signed = _peer(scope), _is_signed(scope, headers)
        try:
            _check_access(address, headers, self.workbench.settings, is_signed=is_signed)
            caller = await self._identify(scope, headers)
        except Unauthenticated:
            self._strangers.spend(address)
            raise
        if is_signed:
            self._nodes.spend(address)
        elif is_stranger(caller) and _is_counted(scope):
            self._strangers.spend(address)
        if caller.level is Level.OPERATOR and (session := headers.get(SESSION_HEADER)):
            caller = replace(caller, session=session)
        if caller.level is Level.OPERATOR and (person := headers.get(PERSON_HEADER)):
            caller = replace(caller, person=unquote(person))
        client, connection = client_name(headers.get("user-agent", "")), _connection(scope)
        return replace(caller, address=address, client=client, connection=connection)

    async def _identify(self, scope: Scope, headers: Headers) -> Caller:
        if scope["path"].startswith(f"{MODELS}/"):
            return await self.workbench.identify_for_models(token_in(headers), scope["path"].split("/")[2])
        token = _bearer(headers) or _offered(headers, "bearer.")
        return ANONYMOUS if token is None else await self.workbench.identify(token)


def server_stopping() -> Unavailable:
    """The error of a request that reaches a server while it stops."""
    return Unavailable(
        "SERVER_STOPPING", "The server stops, and has not run this request. Send it again when a server runs."
    )


class Allowance:
    """Limits the requests of each address; keeps the `REMEMBERED_ADDRESSES` that were used last."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str | None, TokenBucket] = OrderedDict()

    def spend(self, address: str | None) -> None:
        """Count a request.

        Raises:
            TooMany: ``RATE_LIMITED``.
        """
        now = self._clock()
        bucket = self._buckets.setdefault(address, TokenBucket(self._per_minute / 60, 60, now))
        self._buckets.move_to_end(address)
        if len(self._buckets) > REMEMBERED_ADDRESSES:
            self._buckets.popitem(last=False)
        if not bucket.take(now):
            wait = math.ceil(60 / self._per_minute)
            raise TooMany(
                "RATE_LIMITED",
                f"Too many requests without a valid token. Send your token, or wait {wait} s between them.",
                retry_after_seconds=wait,
            ) from None


async def refuse(error: WorkbenchError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with a coded error. A WebSocket gets the same HTTP response if the server supports that, else a close."""
    if scope["type"] == "websocket" and "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 1008, "reason": error.code})
        return
    if scope["type"] == "http" and scope["path"].startswith(f"{MODELS}/"):
        await models_failure(scope["path"].split("/")[2], error)(scope, receive, send)
        return
    await failure(error)(scope, receive, send)


def models_failure(provider: str, error: WorkbenchError) -> JSONResponse:
    """The response for an error, as the clients of a provider read it."""
    headers = {"X-Should-Retry": "false"}
    if (seconds := error.details.get("retry_after_seconds")) is not None:
        headers = {"Retry-After": str(seconds)}
    return JSONResponse(error_body(provider, error.status, error.code, error.message), error.status, headers)


def failure(error: WorkbenchError) -> JSONResponse:
    """The response for an error: `{"success": false, "error": {code, message, details, status}}`."""
    headers = {}
    if error.code == "INVALID_TOKEN":
        headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
    if isinstance(error, TooMany):
        headers["Retry-After"] = str(error.details["retry_after_seconds"])
    return JSONResponse({"success": False, "error": error.as_dict()}, error.status, headers)


def check_address(settings: Settings) -> None:
    """Check that the settings allow the servers to bind their address.

    Raises:
        Refused: ``REMOTE_NOT_ALLOWED``. Unauthenticated: ``ACCESS_TOKEN_REQUIRED``.
    """
    if settings.host in LOOPBACK:
        return
    if not settings.allow_remote:
        refused = _not_remote()
        hint = set_but_not_trusted(settings.project, "allow_remote", "access_token")
        raise Refused(refused.code, f"{refused.message}{hint}")
    if not _secret(settings):
        hint = set_but_not_trusted(settings.project, "access_token")
        needed = f"To serve on {settings.host}, set access_token (WORKBENCH_ACCESS_TOKEN) too.{hint}"
        raise Unauthenticated("ACCESS_TOKEN_REQUIRED", needed)


@lru_cache(CLIENT_NAMES)
def client_name(client: str) -> str | None:
    """A client's own name, made fit for display: printable and short."""
    return "".join(c for c in client if c.isprintable())[:CLIENT_LENGTH].strip() or None


def is_stranger(caller: Caller) -> bool:
    """Whether the caller sent no token. A pending agent with a token is no stranger."""
    return caller.level is Level.ANONYMOUS and caller.agent is None


async def revoked(workbench: Workbench, caller: Caller) -> str:
    """Wait until an agent's token becomes invalid, which ends its connections; the reason.

    The reason is ``REVOKED`` (also for a deleted agent), ``TOKEN_REPLACED``, or ``TOKEN_ENDED`` with its process or
    attempt. Never returns for other callers.
    """
    with workbench.revocations.awaited(caller) as end:
        return await _invalidity(workbench, caller) or await end


async def _invalidity(workbench: Workbench, caller: Caller) -> str | None:
    """Why a caller's token is invalid by now; None if it is valid."""
    if caller.agent is None:
        return None
    try:
        now = await workbench.current(caller)
    except Unauthenticated:
        return "REVOKED"
    return "TOKEN_REPLACED" if now.token_hash != caller.token_hash else None


async def unless_ended(
    workbench: Workbench,
    caller: Caller,
    work: Coroutine[Any, Any, T],
    stopping: asyncio.Future[Any] | None = None,
) -> T:
    """The result of `work`, which may wait; it is cancelled when the caller's token becomes invalid.

    Args:
        stopping: done when the servers are about to stop; that cancels it, too.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``. Unavailable: ``NO_SERVER``.
    """
    working = asyncio.create_task(work)
    try:
        with workbench.revocations.awaited(caller) as end:
            if reason := await _invalidity(workbench, caller):
                raise _invalid(reason)
            ends: set[asyncio.Future[Any]] = {working, end} if stopping is None else {working, end, stopping}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if end.done():
                raise _invalid(end.result())
            if not working.done():
                raise stopped()
            answer = working.result()
            if caller.agent is not None:  # the event that ended the wait may be the revocation
                await workbench.current(caller)
            return answer
    finally:
        working.cancel()


def _invalid(reason: str) -> Unauthenticated:
    return Unauthenticated("INVALID_TOKEN", f"The token was revoked or replaced: {reason}.")


def stopped() -> Unavailable:
    """The error for a request that the servers can no longer answer."""
    return Unavailable("NO_SERVER", "The server was stopped. Try again when one is running.")


def _check_room(scope: Scope, caller: Caller) -> None:
    """Refuse a request when too many connections are served; health checks and the operator are always served.

    Raises:
        Unavailable: ``TOO_MANY_CONNECTIONS``.
    """
    peer: ConnectedPeer | None = scope.get("state", {}).get(PEER)
    if peer is None:  # served by another program than ours
        return
    peer.is_known = caller.level > Level.ANONYMOUS
    if caller.level < Level.OPERATOR and scope["path"] not in HEALTH:
        peer.require_room()


def _own_names(scope: Scope, settings: Settings) -> frozenset[str]:
    """The host names that clients may use; if remote clients are allowed, also the address they connected to.

    That is the configured host, or one of the machine's addresses. A name that a web page points here is neither.
    """
    if not settings.allow_remote:
        return LOOPBACK
    server = scope.get("server")
    return LOOPBACK | {settings.host.lower()} | ({server[0]} if server else set())


def _check_host(headers: Headers, own: frozenset[str], scope: Scope) -> None:
    if _host("//" + headers.get("host", "")) not in own:
        raise BadInput("BAD_HOST", "Workbench answers only under its own addresses. Use http://127.0.0.1.")
    origin = headers.get("origin")
    if origin is not None and not _is_own_page(origin, own, scope):
        raise Refused(
            "BAD_ORIGIN",
            "Only pages of this server and of your running Jupyter servers may use Workbench.",
            origin=origin,
        )


def _is_own_page(url: str, own: frozenset[str], scope: Scope) -> bool:
    """Whether a web page is of this server or of a running Jupyter server.

    Of loopback, only these ports are: any program on this machine can serve pages on another one.
    """
    origin = parse_origin(url)
    if origin is None:
        return False
    if origin.host in own - LOOPBACK:
        return True
    server = scope.get("server")
    is_this_server = origin.host == "localhost" and server is not None and origin.port == server[1]
    return is_this_server or origin in jupyter_origins()


def _check_access(address: str | None, headers: Headers, settings: Settings, *, is_signed: bool) -> None:
    """A client on another machine has to send this server's access token, besides its own token. A KOI node cannot: its
    signature counts instead."""
    if address is None or address in LOOPBACK:
        return
    secret = _secret(settings)
    if not settings.allow_remote or not secret:
        raise _not_remote()
    if is_signed:
        return
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


def _is_signed(scope: Scope, headers: Headers) -> bool:
    """Whether a request is from a KOI node: its endpoint checks a signature, and no token was sent."""
    path = scope["path"]
    is_for_nodes = path.startswith(f"{KOI}/") or _TRAIT_CALL.match(path) is not None
    return scope["type"] == "http" and is_for_nodes and "authorization" not in headers


def _is_counted(scope: Scope) -> bool:
    """Whether a request counts against the limit. A WebSocket authenticates later and has its own limits. Health checks
    must always work: a server that fails one is taken for stopped."""
    return scope["type"] == "http" and scope["path"] not in HEALTH


def _peer(scope: Scope) -> str | None:
    client = scope.get("client")
    return str(client[0]) if client else None


def _connection(scope: Scope) -> tuple[tuple[str, int], tuple[str, int]] | None:
    """The ends of the connection: the client's and ours; None if the client has no address."""
    if not (client := scope.get("client")):
        return None
    own = scope.get("server") or ("", 0)
    return (str(client[0]), int(client[1] or 0)), (str(own[0]), int(own[1] or 0))


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _offered(headers: Headers, prefix: str) -> str | None:
    """A value that a WebSocket client sent as a subprotocol, because browsers cannot send headers."""
    offered = [part.strip() for part in headers.get("sec-websocket-protocol", "").split(",")]
    return next((part.removeprefix(prefix) for part in offered if part.startswith(prefix)), None)
