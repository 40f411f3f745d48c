"""HTTP to and from a server at a URL, with a limit for each message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2

from workbench.rules.token_bucket import TokenBucket
from workbench.upstream.errors import TOO_LARGE
from workbench.upstream.sign_in import signed_in

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

EVENTS_PER_SECOND = 200
"""Events of a stream that are read; the server waits with further ones."""
_PAUSE_SECONDS = 0.1
CONNECT_SECONDS = 10.0
_EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True, repr=False)
class ServerAddress:
    """A server at a URL. It has no representation that shows its secrets.

    Args:
        headers: of every request.
        is_sse: it has the older transport, with one stream of events for all answers.
        note: gets the tokens with which the person is signed in there, to be masked.
    """

    url: str
    headers: Mapping[str, str]
    is_sse: bool = False
    note: Callable[[frozenset[str]], None] = lambda tokens: None


Answered = Callable[[int, str], None]
"""Called with the status and the media type of each answer."""


def http_client(
    address: ServerAddress,
    largest: int,
    answered: Answered,
    headers: Mapping[str, str] | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """A client for a server at a URL. Calls have deadlines of their own.

    Args:
        largest: bytes of an answer from it that is no stream.
        headers: of every request, instead of the address's.
        auth: what the person was given when she signed in.
    """
    # Compressed, an answer could be larger than its bytes.
    return httpx2.AsyncClient(
        auth=auth,
        event_hooks={"response": [_limit_response(largest, answered, is_sse=address.is_sse)]},
        headers={**(headers or address.headers), "accept-encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
    )


@asynccontextmanager
async def http_streams(address: ServerAddress, largest: int, answered: Answered) -> AsyncGenerator[TransportStreams]:
    """Connect to a server.

    Args:
        largest: bytes of a message from it.
    """
    from mcp.client.streamable_http import streamable_http_client

    has_token = any(name.lower() == "authorization" for name in address.headers)
    auth = None if has_token else await asyncio.to_thread(signed_in, address.url, address.note)
    async with (
        http_client(address, largest, answered, auth=auth) as http,
        streamable_http_client(address.url, http_client=http, max_sse_event_size=largest) as streams,
    ):
        yield streams


def sse_streams(
    address: ServerAddress, largest: int, answered: Answered
) -> AbstractAsyncContextManager[TransportStreams]:
    """Connect to a server with the older transport.

    Args:
        largest: bytes of a message from it.
    """
    from mcp.client.sse import sse_client

    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        return http_client(address, largest, answered, headers)

    return sse_client(address.url, headers=dict(address.headers), httpx_client_factory=client)


def _limit_response(largest: int, answered: Answered, *, is_sse: bool) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Makes an answer that is too large or compressed an error, and slows down a stream of too many events."""

    async def limit(response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if response.request.method == "POST" or is_sse:  # no server needs to answer the others
            answered(response.status_code, response.headers.get("content-type", "").lower())
        is_stream = response.headers.get("content-type", "").lower().startswith(_EVENT_STREAM)
        if response.headers.get("content-encoding", "identity") != "identity":
            response.stream = _Refused(response.stream)
        else:
            response.stream = _Paced(response.stream) if is_stream else _Cut(response.stream, largest)

    return limit


class _Wrapper(httpx2.AsyncByteStream):
    """The stream of an answer, changed by `__aiter__`."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Cut(_Wrapper):
    def __init__(self, stream: httpx2.AsyncByteStream, largest: int) -> None:
        super().__init__(stream)
        self._largest = largest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._largest:
                raise httpx2.StreamError(f"{TOO_LARGE} {self._largest} bytes")
            yield chunk


class _Refused(_Wrapper):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        raise httpx2.StreamError("it is compressed, which was not asked for")
        yield b""


class _Paced(_Wrapper):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        events = TokenBucket(EVENTS_PER_SECOND, 1.0, clock())
        async for chunk in self._stream:
            for _ in range(chunk.count(b"\n\n") + chunk.count(b"\r\n\r\n")):
                while not events.take(clock()):
                    await asyncio.sleep(_PAUSE_SECONDS)
            yield chunk
