"""Sends the requests of boxes to the providers of models, with the person's key, and streams the answers through.

A box proves itself by the token of its attempt, which the gate has checked. Nothing of the person's goes into the box:
the answers have a short list of headers, errors are masked, and what a provider says about a key is replaced.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused, TooMany, Unauthenticated, Unavailable, WorkbenchError
from workbench.providers.gateway import KeyTurns, LimitedError
from workbench.rules.models.upstream import (
    LIMITED,
    PROVIDERS,
    ProviderKey,
    UpstreamProvider,
    error_body,
    reset_seconds,
    returned_headers,
    sent_headers,
    sent_query,
)
from workbench.rules.models.usage import with_usage
from workbench.shells.gate import MODELS, models_failure, stopped
from workbench.shells.http.endpoints import caller_of, read_body
from workbench.shells.models.events import EventLimit, TooLongEventError
from workbench.shells.models.metering import Meter

CONNECT_SECONDS = 20.0
CHAT_COMPLETIONS = "v1/chat/completions"
LARGEST_ERROR = 65_536
"""Bytes of an error of a provider that are passed on."""
HOLDS = {"gemini": 30.0}
"""How long a request may wait at most, of providers whose programs give up sooner than others."""
_JSON = ("application/json", "text/event-stream")

log = logging.getLogger(__name__)


class Gateway:
    """The requests to models of one server.

    Args:
        stopping: set when the servers are about to stop; answers that are under way are then ended with an error.
    """

    def __init__(self, workbench: Workbench, stopping: asyncio.Event) -> None:
        self._workbench = workbench
        self._stopping = stopping
        self._settings = workbench.settings
        self._under_way: Counter[str] = Counter()
        self._client: httpx2.AsyncClient | None = None

    @property
    def route(self) -> Route:
        """The endpoint of the gateway."""
        return Route(f"{MODELS}/{{provider}}/{{path:path}}", self.answer, methods=["GET", "POST"])

    async def close(self) -> None:
        """Close the connections to the providers."""
        if self._client is not None:
            await self._client.aclose()

    async def answer(self, request: Request) -> Response:
        """The outermost handler: turns every error into one that the provider's clients read."""
        name = request.path_params["provider"]
        try:
            return await self._answer(request, PROVIDERS[name])
        except WorkbenchError as error:
            return models_failure(name, error)
        except ClientDisconnect:
            return Response()  # the client has left
        except asyncio.CancelledError:  # uvicorn stops, and no longer waits
            return models_failure(name, stopped())
        except Exception:
            log.exception("a request to %s failed", name)
            return models_failure(name, WorkbenchError("INTERNAL_ERROR", "The server failed; see its log."))

    async def _answer(self, request: Request, provider: UpstreamProvider) -> Response:
        path = request.path_params["path"]
        if not provider.paths.fullmatch(path):
            log.info("a box asked %s for a path that is not passed on: %s", provider.id, path[:200])
            raise NotFound("NO_SUCH_ENDPOINT", "The gateway passes on requests to models only, not this path.")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise BadInput("BAD_MESSAGE", "Send the request uncompressed.")
        with ExitStack() as under_way:
            under_way.enter_context(self._counted(request))
            body = await read_body(request, self._settings.max_model_request_bytes)
            if path == CHAT_COMPLETIONS:
                body = with_usage(body)
            meter = Meter(self._workbench, request, provider, path, body)
            key = await self._workbench.provider_key(caller_of(request), provider.id)
            answer = await self._sent(request, provider, key, body, meter)
            return await self._returned(provider, key, answer, meter, under_way)

    @contextmanager
    def _counted(self, request: Request) -> Iterator[None]:
        """Count a request of an attempt.

        Raises:
            TooMany: ``RATE_LIMITED``.
        """
        token = caller_of(request).token_hash or ""
        if self._under_way[token] >= self._settings.max_model_requests_at_once:
            text = "This attempt has as many requests to models under way as max_model_requests_at_once allows."
            raise TooMany("RATE_LIMITED", text, retry_after_seconds=1)
        self._under_way[token] += 1
        try:
            yield
        finally:
            self._left(token)

    def _left(self, token: str) -> None:
        self._under_way[token] -= 1
        if not self._under_way[token]:
            del self._under_way[token]

    async def _sent(
        self, request: Request, provider: UpstreamProvider, key: ProviderKey, body: bytes, meter: Meter
    ) -> UpstreamAnswer:
        """The answer to a request as it begins; its body is still to be read.

        Raises:
            Unavailable: ``PROVIDER_UNREACHABLE``. ClientDisconnect: the box has left.
        """
        query = urlencode(sent_query(request.query_params.multi_items()))
        url = provider.address(key.base, request.path_params["path"]) + (f"?{query}" if query else "")
        headers = sent_headers(((name.lower(), value) for name, value in request.headers.items()), key)

        async def send() -> UpstreamAnswer:
            message = self._http.build_request(request.method, url, headers=headers, content=body or None)
            upstream = await self._http.send(message, stream=True)
            error = await _limit_of(upstream)
            told = reset_seconds(upstream.status_code, upstream.headers, error or b"")
            return UpstreamAnswer(upstream, error, told and min(told, self._settings.hold_longest_seconds))

        last = time.monotonic() + min(self._settings.model_hold_seconds, HOLDS.get(provider.id, math.inf))
        turns = self._workbench.gateway.turns_of(key)
        try:
            return await unless_gone(request, self._in_turn(turns, send, key, last))
        except LimitedError as error:
            text = f"{provider.name} limits this key for another {math.ceil(error.seconds)} s. `workbench holds list`."
            raise TooMany("PROVIDER_LIMITED", text, retry_after_seconds=math.ceil(error.seconds)) from None
        except ClientDisconnect:
            await meter.failed(None, "CLIENT_LEFT")
            raise
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            where = urlsplit(key.base).netloc.rpartition("@")[2]
            self._workbench.gateway.note(key, "unreachable", f"{provider.name} did not answer at {where}.")
            log.warning("%s does not answer: %s", provider.id, type(error).__name__)
            await meter.failed(None, "PROVIDER_UNREACHABLE")
            raise Unavailable(
                "PROVIDER_UNREACHABLE",
                f"{provider.name} does not answer at {where} ({type(error).__name__}). Try again later.",
            ) from None

    async def _in_turn(
        self, turns: KeyTurns, send: Callable[[], Awaitable[UpstreamAnswer]], key: ProviderKey, last: float
    ) -> UpstreamAnswer:
        """The answer to a request, once no limit of its key is in its way; see `KeyTurns.send`."""

        async def sent() -> UpstreamAnswer:
            answer = await send()
            if (seconds := answer.reset_seconds) is not None:
                await answer.upstream.aclose()
                await self._workbench.hold_account(key, answer.upstream.status_code, seconds)
            return answer

        return await turns.send(sent, lambda answer: answer.reset_seconds, last)

    @property
    def _http(self) -> httpx2.AsyncClient:
        """The client of all requests: no proxy of the environment, no redirect, any time to answer."""
        if self._client is None:
            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(CONNECT_SECONDS, read=None, pool=None),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
                trust_env=False,
                follow_redirects=False,
            )
        return self._client

    async def _returned(
        self, provider: UpstreamProvider, key: ProviderKey, answer: UpstreamAnswer, meter: Meter, under_way: ExitStack
    ) -> Response:
        """The response for an answer: passed through, or an error without what it says of the person.

        Args:
            under_way: is closed when the request is no longer under way.
        """
        upstream = answer.upstream
        status, kind = upstream.status_code, upstream.headers.get("content-type", "").partition(";")[0].strip().lower()
        if status == 200 and kind in _JSON:
            self._workbench.gateway.note(key, "accepted", f"{provider.name} accepts the key.")
            headers = returned_headers(upstream.headers.items())
            meter.begin(is_stream=kind == _JSON[1])
            return Passage(upstream, headers, self._passed(provider, upstream, meter), meter, under_way.pop_all())
        try:
            if 300 <= status < 400:
                raise Refused(
                    "PROVIDER_REDIRECTS", f"{provider.name} sent the request elsewhere, which is not followed."
                )
            if status in (401, 403):
                raise self._key_refused(provider, key, status)
            if kind != "application/json" or 200 <= status < 300:
                text = f"{provider.name} answered with {kind or 'something'} and status {status}, not as a model does."
                raise Unavailable("PROVIDER_FAILED", f"{text} Check its address.")
            await meter.failed(status, None)
            return await self._passed_error(provider, key, answer)
        except WorkbenchError as error:
            await meter.failed(status, error.code)
            raise
        finally:
            await upstream.aclose()

    def _key_refused(self, provider: UpstreamProvider, key: ProviderKey, status: int) -> WorkbenchError:
        self._workbench.gateway.note(key, "refused", f"{provider.name} refuses the key: status {status}.")
        text = f"{provider.name} refuses the person's key, of {key.source} (status {status})."
        kind = Unauthenticated if status == 401 else Refused
        return kind("KEY_REFUSED", f"{text} `workbench keys check` tries it; `workbench keys add` keeps another.")

    async def _passed_error(self, provider: UpstreamProvider, key: ProviderKey, answer: UpstreamAnswer) -> Response:
        """An error of a provider, masked: some repeat the key."""
        upstream, raw = answer.upstream, answer.error if answer.error is not None else await _error_of(answer.upstream)
        status, headers = upstream.status_code, returned_headers(upstream.headers.items())
        try:
            said = json.loads(self._workbench.masked(raw.decode("utf-8", "replace"), key.value))
        except (ValueError, RecursionError):
            said = error_body(provider.id, status, "PROVIDER_FAILED", "The provider's error cannot be read.")
        return JSONResponse(said, status, headers)

    async def _passed(
        self, provider: UpstreamProvider, upstream: httpx2.Response, meter: Meter
    ) -> AsyncIterator[bytes]:
        """The body of an answer as it comes. One that is cut ends with an error that the clients read."""
        limit = EventLimit(self._settings.max_model_event_bytes, is_stream=meter.is_stream)
        stopping = asyncio.create_task(self._stopping.wait())
        chunks = upstream.aiter_raw()
        try:
            while (chunk := await _next(chunks, stopping)) is not None:
                limit.take(chunk)
                meter.take(chunk)
                yield chunk
        except (httpx2.HTTPError, TooLongEventError, WorkbenchError) as error:
            log.warning("an answer of %s was cut: %s", provider.id, type(error).__name__)
            meter.cut(error.code if isinstance(error, WorkbenchError) else "PROVIDER_FAILED")
            if not meter.is_stream:
                raise CutError from error
            yield _last_event(provider.id, error)
        finally:
            stopping.cancel()


class CutError(Exception):
    """An answer without events ended before its end: the box's connection is closed, so that it notices."""


class Passage(Response):
    """Streams an answer through; closes the provider's side however it ends."""

    def __init__(
        self,
        upstream: httpx2.Response,
        headers: Mapping[str, str],
        body: AsyncIterator[bytes],
        meter: Meter,
        under_way: ExitStack,
    ) -> None:
        super().__init__(None, upstream.status_code, headers)
        self._under_way = under_way
        self._meter = meter
        self._upstream = upstream
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See `starlette.responses.Response`. It ends when the client leaves."""
        headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        streaming = asyncio.create_task(self._stream(send, headers))
        leaving = asyncio.create_task(_left(receive))
        try:
            await asyncio.wait({streaming, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if streaming.done():
                streaming.result()
        finally:
            for task in (streaming, leaving):
                task.cancel()
            self._under_way.close()
            await asyncio.wait({streaming, leaving})
            await self._upstream.aclose()
            await self._meter.ended(is_complete=False)  # unless it is booked

    async def _stream(self, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        async for chunk in self._body:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await self._meter.ended(is_complete=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """A provider's answer as it begins.

    Args:
        error: its body, if that was read to find what limit it tells.
        reset_seconds: how long the limit lasts that it tells, but no longer than the settings say; None: it tells none.
    """

    upstream: httpx2.Response
    error: bytes | None
    reset_seconds: float | None


async def _limit_of(upstream: httpx2.Response) -> bytes | None:
    """The body of an answer that tells a limit."""
    return await _error_of(upstream) if upstream.status_code in LIMITED else None


async def _error_of(upstream: httpx2.Response) -> bytes:
    """The body of an error, as far as it is passed on."""
    raw = bytearray()
    async for chunk in upstream.aiter_raw():
        raw += chunk
        if len(raw) > LARGEST_ERROR:
            break
    return bytes(raw)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(request: Request, work: Awaitable[UpstreamAnswer]) -> UpstreamAnswer:
    """The result of `work`, which is cancelled when the client leaves.

    Raises:
        ClientDisconnect: it has left.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.create_task(_left(request.receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        for task in (working, leaving):
            task.cancel()


async def _next(chunks: AsyncIterator[bytes], stopping: asyncio.Task[Any]) -> bytes | None:
    """The next chunk; None at the end.

    Raises:
        Unavailable: ``NO_SERVER``: the server stops.
    """
    coming = asyncio.ensure_future(anext(chunks, None))
    try:
        await asyncio.wait({coming, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()
        raise stopped()
    finally:
        coming.cancel()


def _last_event(provider: str, error: Exception) -> bytes:
    """The event that ends an answer which was cut, as the provider's clients read it."""
    code, status = "PROVIDER_FAILED", 503
    message = "The answer was cut before its end. Try again."
    if isinstance(error, WorkbenchError):
        code, message = error.code, error.message
    elif isinstance(error, TooLongEventError):
        code, message = "ANSWER_TOO_LARGE", "The provider sent a single event of more than max_model_event_bytes."
    body = error_body(provider, 529 if provider == "anthropic" else status, code, message)
    name = "event: error\n" if provider == "anthropic" else ""
    if provider == "openai":
        failure = {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": code, "message": message}},
        }
        body = {**failure, **body}
    return f"\n\n{name}data: {json.dumps(body)}\n\n".encode()
