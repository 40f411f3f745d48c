"""POST requests to a server at a URL, over connections of our own where that is plain HTTP.

The client of httpx2 can do all of them. It takes longer for one than all else that is done for a call of a tool, which
shows on this machine and nearby; so it sends only what is not plain: over TLS or a proxy, with cookies or a password.
Either way the answer is a response of httpx2, with the same limits and the same errors.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast
from urllib.request import getproxies

import h11
import httpx2

from workbench.upstream.http_transport import CONNECT_SECONDS, limiting

Post = Callable[[bytes, Mapping[str, str]], AbstractAsyncContextManager[httpx2.Response]]
"""`async with post(content, headers) as response`: send a request, whose answer can be read within the block; leaving
it before the end of the answer closes the connection.

Raises:
    httpx2.HTTPError: there is no answer, or it breaks off.
"""

MOST_CONNECTIONS = 100
"""Requests that are under way at once; further ones wait in the client of httpx2."""
MOST_IDLE = 20
IDLE_SECONDS = 5.0
"""How long a connection that is not used is kept. These are the limits of httpx2."""
LARGEST_HEAD = 64 << 10
"""Bytes of the status and the headers of an answer."""


@asynccontextmanager
async def posts(http: httpx2.AsyncClient, url: str, largest: int) -> AsyncIterator[Post]:
    """Requests to a URL with the headers of a client, within the block.

    Args:
        largest: bytes of an answer that is no stream.
    """
    if not _is_plain(http, url):
        yield through(http, url)
        return
    connections = Connections(http, url, largest)
    try:
        yield connections.post
    finally:
        connections.close()


def through(http: httpx2.AsyncClient, url: str) -> Post:
    """Requests by a client of httpx2."""
    return lambda content, headers: http.stream("POST", url, content=content, headers=headers)


def _is_plain(http: httpx2.AsyncClient, url: str) -> bool:
    parsed = httpx2.URL(url)
    return parsed.scheme == "http" and not parsed.userinfo and not (http.trust_env and getproxies())


class Connections:
    """The connections to the server of a URL.

    Args:
        http: sends what is not plain; its headers are those of every request.
        largest: bytes of an answer that is no stream.
    """

    def __init__(self, http: httpx2.AsyncClient, url: str, largest: int) -> None:
        self._http = http
        self._through_client = through(http, url)
        self._request = http.build_request("POST", url)
        self._headers = {name.lower(): value for name, value in self._request.headers.raw}
        self._limit = limiting(largest)
        self._used: set[_Connection] = set()
        self._idle: list[_Connection] = []

    @asynccontextmanager
    async def post(self, content: bytes, headers: Mapping[str, str]) -> AsyncIterator[httpx2.Response]:
        """See `Post`."""
        if len(self._used) >= MOST_CONNECTIONS or self._http.cookies:
            async with self._through_client(content, headers) as response:
                yield response
            return
        connection = await self._connected()
        self._used.add(connection)
        try:
            response = await connection.exchange(self._request, self._all_headers(content, headers), content)
            if "set-cookie" in response.headers:
                self._http.cookies.extract_cookies(response)
            await self._limit(response)
            yield response
        finally:
            self._used.discard(connection)
            if connection.is_done and len(self._idle) < MOST_IDLE:
                self._idle.append(connection.rested())
            else:
                connection.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in (*self._idle, *self._used):
            connection.close()

    async def _connected(self) -> _Connection:
        """A connection that is open, as far as is known.

        Raises:
            httpx2.ConnectError, httpx2.ConnectTimeout.
        """
        while self._idle:
            if (found := self._idle.pop()).is_fresh:
                return found
            found.close()
        url = self._request.url
        port = url.port or 80
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(_Connection, url.host, port, happy_eyeballs_delay=0.25)
        except TimeoutError:
            raise httpx2.ConnectTimeout(f"no connection within {CONNECT_SECONDS:g} s") from None
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        return connection

    def _all_headers(self, content: bytes, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        own = {name.lower().encode(): value.encode() for name, value in headers.items()}
        return list({**self._headers, **own, b"content-length": b"%d" % len(content)}.items())


class _Connection(asyncio.Protocol):
    """One connection, with one request after another."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._arriving: asyncio.Future[None] | None = None
        self._has_ended = False
        self._rested_at = 0.0

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        if not self._wake() and self._transport is not None:  # nobody reads now
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self._end()

    def connection_lost(self, error: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._http.receive_data(b"")
            self._wake()

    def _wake(self) -> bool:
        arriving, self._arriving = self._arriving, None
        if arriving is None:
            return False
        if not arriving.done():
            arriving.set_result(None)
        return True

    # Exchanges.

    async def exchange(
        self, request: httpx2.Request, headers: list[tuple[bytes, bytes]], content: bytes
    ) -> httpx2.Response:
        """Send a request; the answer, whose body is still to be read.

        Args:
            request: its method and URL, and what the answer is said to belong to.

        Raises:
            httpx2.LocalProtocolError, httpx2.RemoteProtocolError.
        """
        assert self._transport is not None
        try:
            head = h11.Request(method=request.method, target=request.url.raw_path, headers=headers)
            sent = self._http.send(head), self._http.send(h11.Data(content)), self._http.send(h11.EndOfMessage())
        except h11.LocalProtocolError as error:
            raise httpx2.LocalProtocolError(str(error)) from error
        self._transport.write(b"".join(filter(None, sent)))
        while isinstance(answer := await self._next(), h11.InformationalResponse):
            pass
        assert isinstance(answer, h11.Response)
        headers = answer.headers.raw_items()
        return httpx2.Response(answer.status_code, headers=headers, stream=_Body(self.body), request=request)

    async def body(self) -> AsyncIterator[bytes]:
        """The body of the answer.

        Raises:
            httpx2.RemoteProtocolError.
        """
        while isinstance(found := await self._next(), h11.Data):
            yield bytes(found.data)

    async def _next(self) -> Any:
        """The next event of the answer."""
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                assert self._transport is not None
                self._transport.resume_reading()
                self._arriving = self._loop.create_future()
                await self._arriving
        except h11.RemoteProtocolError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        return event

    # Between exchanges.

    @property
    def is_done(self) -> bool:
        """Whether the answer was read to its end, and another request can follow."""
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE and not self._has_ended

    def rested(self) -> _Connection:
        """This connection, ready for the next request."""
        assert self._transport is not None
        self._http.start_next_cycle()
        self._transport.resume_reading()
        self._rested_at = self._loop.time()
        return self

    @property
    def is_fresh(self) -> bool:
        """Whether the server has neither closed it nor sent anything that was not asked for."""
        if self._has_ended or self._transport is None or self._transport.is_closing():
            return False
        return self._loop.time() - self._rested_at < IDLE_SECONDS and not self._is_readable()

    def _is_readable(self) -> bool:
        assert self._transport is not None
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return self._http.trailing_data != (b"", False) or bool(poll.poll(0))

    def close(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, read: Callable[[], AsyncIterator[bytes]]) -> None:
        self._read = read

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._read()
