"""HTTP to and from a server at a URL, with a limit for each message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

import httpx2

from workbench.rules.token_bucket import TokenBucket
from workbench.upstream.errors import TOO_LARGE
from workbench.upstream.target import ServerAddress

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

EVENTS_PER_SECOND = 200
"""Events of a stream that are read; the server waits with further ones."""
_PAUSE_SECONDS = 0.1
CONNECT_SECONDS = 10.0
_EVENT_STREAM = "text/event-stream"


def http_client(
    address: ServerAddress,
    largest: int,
    headers: Mapping[str, str] | None = None,
) -> httpx2.AsyncClient:
    """A client for a server at a URL. Calls have deadlines of their own.

    Args:
        largest: bytes of an answer from it that is no stream.
        headers: of every request, instead of the address's.
    """
    # Compressed, an answer could be larger than its bytes.
    return httpx2.AsyncClient(
        event_hooks={"response": [_limit_response(largest)]},
        headers={**(headers or address.headers), "accept-encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
    )


@asynccontextmanager
async def http_streams(address: ServerAddress, largest: int) -> AsyncGenerator[TransportStreams]:
    """Connect to a server.

    Args:
        largest: bytes of a message from it.
    """
    from mcp.client.streamable_http import streamable_http_client

    async with (
        http_client(address, largest) as http,
        streamable_http_client(address.url, http_client=http, max_sse_event_size=largest) as streams,
    ):
        yield streams


def sse_streams(address: ServerAddress, largest: int) -> AbstractAsyncContextManager[TransportStreams]:
    """Connect to a server with the older transport.

    Args:
        largest: bytes of a message from it.
    """
    from mcp.client.sse import sse_client

    def client(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        return http_client(address, largest, headers)

    return sse_client(address.url, headers=dict(address.headers), httpx_client_factory=client)


def _limit_response(largest: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Makes an answer that is too large or compressed an error, and slows down a stream of too many events."""

    async def limit(response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_stream = response.headers.get("content-type", "").lower().startswith(_EVENT_STREAM)
        if response.headers.get("content-encoding", "identity") != "identity":
            response.stream = _Refused(response.stream)
        else:
            response.stream = _Paced(response.stream) if is_stream else _Cut(response.stream, largest)

    return limit


class _Cut(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, largest: int) -> None:
        self._stream = stream
        self._largest = largest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._largest:
                raise httpx2.StreamError(f"{TOO_LARGE} {self._largest} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Refused(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        raise httpx2.StreamError("it is compressed, which was not asked for")
        yield b""

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Paced(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        events = TokenBucket(EVENTS_PER_SECOND, 1.0, clock())
        async for chunk in self._stream:
            for _ in range(chunk.count(b"\n\n") + chunk.count(b"\r\n\r\n")):
                while not events.take(clock()):
                    await asyncio.sleep(_PAUSE_SECONDS)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
