"""Requests over connections of our own: kept, replaced, and closed."""

from __future__ import annotations

import asyncio
from asyncio import StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.upstream.listener import Answer, Listener, Request, answered, listening
from workbench.upstream.http_posts import MOST_CONNECTIONS, MOST_IDLE, Connections, Post, posts
from workbench.upstream.http_transport import http_client
from workbench.upstream.target import Address

pytestmark = pytest.mark.anyio

LARGEST = 10_000
HEADERS = {"mcp-method": "tools/call"}


@asynccontextmanager
async def posting(answer: Answer, **headers: str) -> AsyncIterator[tuple[Listener, Post]]:
    """A server, and requests to it."""
    async with listening(answer) as listener:
        address = Address(listener.url, headers)
        async with http_client(address, LARGEST) as http, posts(http, address.url, LARGEST) as post:
            yield listener, post


async def body_of(post: Post, content: bytes = b"{}") -> bytes:
    """The body of the answer to a request."""
    async with post(content, HEADERS) as response:
        return await response.aread()


def always(*chunks: bytes) -> Answer:
    """Answers every request with these bytes."""

    async def answer(request: Request, writer: StreamWriter) -> None:
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()

    return answer


async def test_one_connection_serves_requests_that_follow_each_other_with_all_their_headers() -> None:
    async with posting(always(answered(b"yes")), authorization="Bearer secret") as (listener, post):
        assert [await body_of(post, b"[%d]" % number) for number in range(3)] == [b"yes"] * 3
        assert {request.connection for request in listener.requests} == {1}
        assert [request.body for request in listener.requests] == [b"[0]", b"[1]", b"[2]"]
    lines = listener.requests[-1].head.splitlines()
    assert lines[0] == "post /mcp http/1.1"
    host = listener.url.removeprefix("http://").removesuffix("/mcp")
    expected = {f"host: {host}", "authorization: bearer secret", "mcp-method: tools/call", "accept-encoding: identity"}
    assert expected <= set(lines)
    assert await listener.closed.get() == 1


def once_there_are(number: int) -> Answer:
    """Answers requests as soon as there are so many."""
    everybody = asyncio.Barrier(number)

    async def answer(request: Request, writer: StreamWriter) -> None:
        await everybody.wait()
        writer.write(answered(b"yes"))

    return answer


async def test_requests_at_once_have_connections_of_their_own_and_few_are_kept() -> None:
    async with posting(once_there_are(MOST_IDLE + 5)) as (listener, post):
        await asyncio.gather(*(body_of(post) for _ in range(MOST_IDLE + 5)))
        assert len({request.connection for request in listener.requests}) == MOST_IDLE + 5
        assert len({await listener.closed.get() for _ in range(5)}) == 5


async def test_an_answer_may_come_in_pieces_after_others_that_are_preliminary() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    async with posting(always(early, head, b"3\r\none\r\n", b"3\r\ntwo\r\n", b"0\r\n\r\n")) as (listener, post):
        assert await body_of(post) == b"onetwo"
        assert await body_of(post) == b"onetwo"
    assert {request.connection for request in listener.requests} == {1}


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def answer(request: Request, writer: StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        writer.close()

    async with posting(answer) as (listener, post):
        assert [await body_of(post), await body_of(post)] == [b"all of it"] * 2
    assert [request.connection for request in listener.requests] == [1, 2]


@pytest.mark.parametrize("last", [b"", b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"])
async def test_a_connection_that_its_server_closes_is_replaced(last: bytes) -> None:
    writers: list[StreamWriter] = []

    async def answer(request: Request, writer: StreamWriter) -> None:
        writers.append(writer)
        writer.write(answered(b"yes"))

    async with posting(answer) as (listener, post):
        await body_of(post)
        writers[0].write(last)
        writers[0].close()
        await writers[0].wait_closed()
        assert await body_of(post) == b"yes"
    assert [request.connection for request in listener.requests] == [1, 2]


async def test_what_comes_after_an_answer_is_not_taken_for_the_next_one() -> None:
    async with posting(always(answered(b"yes") + answered(b"no"))) as (listener, post):
        assert [await body_of(post), await body_of(post)] == [b"yes", b"yes"]
    assert [request.connection for request in listener.requests] == [1, 2]


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    ],
)
async def test_an_answer_that_breaks_off_or_is_no_http_is_an_error_as_it_is_of_httpx2(sent: bytes) -> None:
    async def answer(request: Request, writer: StreamWriter) -> None:
        writer.write(sent)
        writer.close()

    async with posting(answer) as (_, post):
        with pytest.raises(httpx2.RemoteProtocolError):
            await body_of(post)


async def test_a_server_that_is_not_there_is_an_error_as_it_is_of_httpx2() -> None:
    async with posting(always()) as (listener, _):
        pass
    async with http_client(Address(listener.url, {}), LARGEST) as http, posts(http, listener.url, LARGEST) as post:
        with pytest.raises(httpx2.ConnectError):
            await body_of(post)


async def test_a_header_that_cannot_be_sent_is_an_error_as_it_is_of_httpx2() -> None:
    async with posting(always(answered(b"yes"))) as (listener, post):
        with pytest.raises(httpx2.LocalProtocolError):
            async with post(b"{}", {"mcp-name": "two\r\nlines"}):
                pass
        assert await body_of(post) == b"yes"
    assert len(listener.requests) == 1


async def test_an_answer_that_is_too_large_or_compressed_is_an_error() -> None:
    async with posting(always(answered(b"x" * (LARGEST + 1)))) as (_, post):
        with pytest.raises(httpx2.StreamError, match="larger than"):
            await body_of(post)
    async with posting(always(answered(b"", "Content-Encoding: gzip"))) as (_, post):
        with pytest.raises(httpx2.DecodingError, match="compressed"):
            await body_of(post)


async def test_a_reader_that_waits_does_not_take_a_stream_without_end_into_memory() -> None:
    stuck = asyncio.Event()

    async def answer(request: Request, writer: StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(0)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while True:
            writer.write(b"x" * (1 << 20))
            try:
                async with asyncio.timeout(0.2):
                    await writer.drain()
            except TimeoutError:
                stuck.set()
                await writer.drain()

    async with posting(answer) as (_, post), post(b"{}", HEADERS) as response:
        async with asyncio.timeout(30):
            await stuck.wait()
        assert await anext(response.aiter_raw())


async def test_leaving_an_answer_before_its_end_closes_the_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: ping\n\n"
    async with posting(always(head)) as (listener, post):
        async with post(b"{}", HEADERS) as response:
            assert await anext(response.aiter_raw()) == b": ping\n\n"
        assert await listener.closed.get() == 1


async def test_cancelling_a_request_closes_its_connection() -> None:
    arrived = asyncio.Event()

    async def answer(request: Request, writer: StreamWriter) -> None:
        arrived.set()

    async with posting(answer) as (listener, post):
        asking = asyncio.create_task(body_of(post))
        await arrived.wait()
        asking.cancel()
        assert await listener.closed.get() == 1
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_who_gets_a_cookie_sends_it_from_then_on() -> None:
    async with posting(always(answered(b"yes", "Set-Cookie: server=two"))) as (listener, post):
        assert [await body_of(post), await body_of(post)] == [b"yes"] * 2
    assert ["cookie: server=two" in request.head for request in listener.requests] == [False, True]


async def test_more_requests_than_connections_wait_in_the_client_of_httpx2() -> None:
    async with posting(once_there_are(MOST_CONNECTIONS + 1)) as (_, post):
        answers = await asyncio.gather(*(body_of(post) for _ in range(MOST_CONNECTIONS + 1)))
    assert answers == [b"yes"] * (MOST_CONNECTIONS + 1)


async def test_only_plain_http_without_a_proxy_or_a_password_goes_over_our_own_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def is_own(url: str) -> bool:
        async with http_client(Address(url, {}), LARGEST) as http, posts(http, url, LARGEST) as post:
            return isinstance(getattr(post, "__self__", None), Connections)

    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert await is_own("http://localhost:1/mcp")
    assert not await is_own("https://localhost:1/mcp")
    assert not await is_own("http://ada:secret@localhost:1/mcp")
    monkeypatch.setenv("http_proxy", "http://localhost:2")
    assert not await is_own("http://localhost:1/mcp")
