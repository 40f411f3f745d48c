"""Sends the requests of boxes to the providers of models, with the person's key, and streams the answers through.

A box proves itself by the token of its attempt, which the gate has checked. Nothing of the person's goes into the box:
the answers have a short list of headers, errors are masked, and what a provider says about a key is replaced.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import httpx2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from workbench.app import Workbench
from workbench.errors import BadInput, NotFound, Refused, TooMany, Unauthenticated, Unavailable, WorkbenchError
from workbench.providers.gateway import Came, LimitedError, Patience
from workbench.rules.models.upstream import (
    LIMITED,
    PROVIDERS,
    ProviderKey,
    UpstreamProvider,
    error_body,
    is_streamed,
    reset_seconds,
    returned_headers,
    sent_headers,
    sent_query,
)
from workbench.rules.models.usage import with_usage
from workbench.shells.gate import MODELS, models_failure, stopped
from workbench.shells.http.endpoints import caller_of, read_body
from workbench.shells.models.events import EventLimit, KeyFilter, TooLongEventError
from workbench.shells.models.metering import Meter

CONNECT_SECONDS = 20.0
CHAT_COMPLETIONS = "v1/chat/completions"
LARGEST_ERROR = 65_536
"""Bytes of an error of a provider that are passed on."""
SILENT = {"gemini": 30.0}
"""How long the programs of a provider wait for an answer to begin; those of others: `SILENT_SECONDS`."""
SILENT_SECONDS = 540.0
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
"""The sign of life in an answer that has to wait; all programs leave it out."""
_JSON = ("application/json", "text/event-stream")

T = TypeVar("T")

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
        async with AsyncExitStack() as under_way:
            under_way.enter_context(self._counted(request))
            body = await read_body(request, self._settings.max_model_request_bytes)
            if path == CHAT_COMPLETIONS:
                body = with_usage(body)
            meter = Meter(self._workbench, request, provider, path, body)
            if meter.counts:
                await self._workbench.require_budget(caller_of(request), meter.asked_model)
            key = await self._workbench.provider_key(caller_of(request), provider.id)
            answers = await under_way.enter_async_context(aclosing(self._answers(request, provider, key, body, meter)))
            try:
                answer = await unless_gone(request, anext(answers))
            except ClientDisconnect:
                await meter.ended(is_complete=False)
                raise
            if answer is None:
                held = self._held(provider, key, answers, meter)
                return Passage(200, {"content-type": _JSON[1]}, held, meter, under_way.pop_all())
            under_way.push_async_callback(answer.upstream.aclose)
            try:
                passed = await self._begun(provider, key, answer, meter)
            except ProviderError as error:
                return JSONResponse(error.said, answer.upstream.status_code, answer.headers(key))
            return Passage(200, answer.headers(key), passed, meter, under_way.pop_all())

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

    async def _answers(
        self, request: Request, provider: UpstreamProvider, key: ProviderKey, body: bytes, meter: Meter
    ) -> AsyncGenerator[UpstreamAnswer | None]:
        """The answer to a request as it begins; its body is still to be read. See `KeyTurns.answers`.

        Raises:
            Unavailable: ``PROVIDER_UNREACHABLE``. TooMany: ``PROVIDER_LIMITED``.
        """
        query = sent_query(request.query_params.multi_items())
        url = provider.address(key.base, request.path_params["path"]) + (f"?{urlencode(query)}" if query else "")
        headers = sent_headers(((name.lower(), value) for name, value in request.headers.items()), key)
        turns = self._workbench.turns_of(key)

        async def send() -> tuple[UpstreamAnswer, Came]:
            meter.sent()
            message = self._http.build_request(request.method, url, headers=headers, content=body or None)
            upstream = await self._http.send(message, stream=True)
            if upstream.status_code not in LIMITED:
                return UpstreamAnswer(upstream), Came.ANSWER
            with turns.closed():
                async with aclosing(upstream):
                    answer = UpstreamAnswer(upstream, await _error_of(upstream))
                seconds = reset_seconds(upstream.status_code, upstream.headers, answer.error or b"")
                if seconds is None:
                    return answer, Came.REFUSAL
                longest = self._settings.hold_longest_seconds
                await self._workbench.hold_account(key, upstream.status_code, min(seconds, longest))
                return answer, Came.LIMIT

        silent = SILENT.get(provider.id, SILENT_SECONDS)
        patience = Patience(self._settings.model_hold_seconds, silent, lambda: is_streamed(provider.id, url, body))
        try:
            async with aclosing(turns.answers(send, patience)) as answers:
                async for answer in answers:
                    yield answer
        except LimitedError as error:
            text = f"{provider.name} limits this key for another {math.ceil(error.seconds)} s. `workbench holds list`."
            raise TooMany("PROVIDER_LIMITED", text, retry_after_seconds=math.ceil(error.seconds)) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            where = urlsplit(key.base).netloc.rpartition("@")[2]
            self._workbench.gateway.note(key, "unreachable", f"{provider.name} did not answer at {where}.")
            log.warning("%s does not answer: %s", provider.id, type(error).__name__)
            await meter.failed(None, "PROVIDER_UNREACHABLE")
            raise Unavailable(
                "PROVIDER_UNREACHABLE",
                f"{provider.name} does not answer at {where} ({type(error).__name__}). Try again later.",
            ) from None

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

    async def _begun(
        self, provider: UpstreamProvider, key: ProviderKey, answer: UpstreamAnswer, meter: Meter
    ) -> AsyncGenerator[bytes]:
        """The body of a model's answer.

        Raises:
            ProviderError: the provider's own error, without what it says of the person. WorkbenchError: what it
                answered is none of a model.
        """
        upstream = answer.upstream
        status, kind = upstream.status_code, upstream.headers.get("content-type", "").partition(";")[0].strip().lower()
        if status == 200 and kind in _JSON:
            self._workbench.gateway.note(key, "accepted", f"{provider.name} accepts the key.")
            meter.begin(is_stream=kind == _JSON[1])
            return self._passed(provider, key, upstream, meter)
        try:
            if 300 <= status < 400:
                text = f"{provider.name} sent the request elsewhere, which is not followed."
                raise Refused("PROVIDER_REDIRECTS", text)
            if status in (401, 403):
                raise self._key_refused(provider, key, status)
            if kind != "application/json" or 200 <= status < 300:
                text = f"{provider.name} answered with {kind or 'something'} and status {status}, not as a model does."
                raise Unavailable("PROVIDER_FAILED", f"{text} Check its address.")
        except WorkbenchError as error:
            await meter.failed(status, error.code)
            raise
        await meter.failed(status, None)
        raise ProviderError(await self._said(provider, key, answer))

    async def _held(
        self,
        provider: UpstreamProvider,
        key: ProviderKey,
        answers: AsyncIterator[UpstreamAnswer | None],
        meter: Meter,
    ) -> AsyncGenerator[bytes]:
        """The body of an answer in events that has to wait for a limit: pings, then what comes, or why nothing does."""
        yield PING
        try:
            async for answer in answers:
                if answer is None:
                    yield PING
                    continue
                async with aclosing(answer.upstream), aclosing(await self._begun(provider, key, answer, meter)) as body:
                    async for chunk in body:
                        yield chunk
        except WorkbenchError as error:
            yield _last_event(provider.id, error)
        except ProviderError as error:
            yield _event(provider.id, error.said)

    def _key_refused(self, provider: UpstreamProvider, key: ProviderKey, status: int) -> WorkbenchError:
        self._workbench.gateway.note(key, "refused", f"{provider.name} refuses the key: status {status}.")
        text = f"{provider.name} refuses the person's key, of {key.source} (status {status})."
        kind = Unauthenticated if status == 401 else Refused
        return kind("KEY_REFUSED", f"{text} `workbench keys check` tries it; `workbench keys add` keeps another.")

    async def _said(self, provider: UpstreamProvider, key: ProviderKey, answer: UpstreamAnswer) -> Any:
        """What an error of a provider says, masked once it is decoded: some repeat the key."""
        raw = answer.error if answer.error is not None else await _error_of(answer.upstream)
        try:
            return self._workbench.masked(json.loads(raw.decode("utf-8", "replace")), key.value)
        except (ValueError, RecursionError):
            status = answer.upstream.status_code
            return error_body(provider.id, status, "PROVIDER_FAILED", "The provider's error cannot be read.")

    async def _passed(
        self, provider: UpstreamProvider, key: ProviderKey, upstream: httpx2.Response, meter: Meter
    ) -> AsyncGenerator[bytes]:
        """The body of an answer as it comes, without the key. One that is cut ends with an error that clients read."""
        without_key = KeyFilter(key.value)
        limit = EventLimit(self._settings.max_model_event_bytes, is_stream=meter.is_stream)
        chunks = Chunks(upstream.aiter_raw(), self._stopping)
        try:
            async for chunk in chunks:
                limit.take(chunk)
                if passed := without_key.take(chunk):
                    meter.take(passed)
                    yield passed
            if rest := without_key.close():
                meter.take(rest)
                yield rest
        except (httpx2.HTTPError, TooLongEventError, WorkbenchError) as error:
            log.warning("an answer of %s was cut: %s", provider.id, type(error).__name__)
            meter.cut(error.code if isinstance(error, WorkbenchError) else "PROVIDER_FAILED")
            if not meter.is_stream:
                raise CutError from error
            yield _last_event(provider.id, error)
        finally:
            chunks.close()


class CutError(Exception):
    """An answer without events ended before its end: the box's connection is closed, so that it notices."""


class ProviderError(Exception):
    """An error of a provider, as the box gets it."""

    def __init__(self, said: Any) -> None:
        super().__init__()
        self.said = said


class Passage(Response):
    """Streams an answer through; closes the provider's side however it ends.

    Args:
        under_way: closed when the request is no longer under way.
    """

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        body: AsyncGenerator[bytes],
        meter: Meter,
        under_way: AsyncExitStack,
    ) -> None:
        super().__init__(None, status, headers)
        self._under_way = under_way
        self._under_way.push_async_callback(body.aclose)
        self._meter = meter
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
            await asyncio.wait({streaming, leaving})
            await self._under_way.aclose()
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
    """

    upstream: httpx2.Response
    error: bytes | None = None

    def headers(self, key: ProviderKey) -> dict[str, str]:
        """Those that the box gets."""
        headers = returned_headers(self.upstream.headers.items())
        return {name: value for name, value in headers.items() if key.value not in value}


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


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
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
        await asyncio.wait({working, leaving})


class Chunks:
    """The pieces of an answer, until the server stops. Only what reads them waits: a task for each would take longer.

    Args:
        stopping: set when the server stops.
    """

    def __init__(self, pieces: AsyncIterator[bytes], stopping: asyncio.Event) -> None:
        self._pieces = pieces
        self._stopping = stopping
        self._reading: asyncio.Timeout | None = None
        self._watching = asyncio.create_task(self._watch())

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        """The pieces as they come.

        Raises:
            Unavailable: ``NO_SERVER``: the server stops.
        """
        while not self._stopping.is_set():
            try:
                async with asyncio.timeout(None) as self._reading:
                    piece = await anext(self._pieces, None)
            except TimeoutError:
                break
            finally:
                self._reading = None
            if piece is None:
                return
            yield piece
        raise stopped()

    async def _watch(self) -> None:
        await self._stopping.wait()
        if self._reading is not None:
            self._reading.reschedule(asyncio.get_running_loop().time())

    def close(self) -> None:
        """No more is read."""
        self._watching.cancel()


def _last_event(provider: str, error: Exception) -> bytes:
    """The event that ends an answer which was cut, as the provider's clients read it."""
    code, status = "PROVIDER_FAILED", Unavailable.status
    message = "The answer was cut before its end. Try again."
    if isinstance(error, WorkbenchError):
        code, message, status = error.code, error.message, error.status
    elif isinstance(error, TooLongEventError):
        code, message = "ANSWER_TOO_LARGE", "The provider sent a single event of more than max_model_event_bytes."
    is_passing = status == Unavailable.status
    body = error_body(provider, 529 if is_passing and provider == "anthropic" else status, code, message)
    if provider == "openai":  # Codex waits after this code, and after no other
        failed = {"code": "server_is_overloaded" if is_passing else code, "message": f"{code}: {message}"}
        body = {"type": "response.failed", "response": {"status": "failed", "error": failed}, **body}
    return _event(provider, body)


def _event(provider: str, body: Any) -> bytes:
    name = "event: error\n" if provider == "anthropic" else ""
    return f"\n\n{name}data: {json.dumps(body)}\n\n".encode()
