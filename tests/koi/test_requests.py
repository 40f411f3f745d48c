"""Requests to other nodes: whatever a peer answers, the result is its payload or a coded error, and in time."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from workbench.errors import Refused, Unavailable
from workbench.koi.envelope import signed
from workbench.koi.identity import Identity, load_or_create
from workbench.koi.payloads import EventsPayload, FetchRids, PollEvents, RidsPayload
from workbench.koi.requests import POLL, RIDS, Peer, PeerClient
from workbench.rules.personalities.rid import AgentPersonality

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

LARGEST = 100_000
ADA = RidsPayload(rids=[AgentPersonality("ada", "1")])

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def response(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    """An HTTP response."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


@pytest.fixture
def here(tmp_path: Path) -> Identity:
    """This node."""
    return load_or_create(tmp_path / "here.pem", "here")


@pytest.fixture
def there(tmp_path: Path) -> Identity:
    """The peer."""
    return load_or_create(tmp_path / "there.pem", "there")


@pytest.fixture
async def client(here: Identity) -> AsyncIterator[PeerClient]:
    """This node's client."""
    made = PeerClient(here, seconds=5, largest=LARGEST)
    yield made
    await made.close()


Serve = Callable[[Talk], Awaitable[Peer]]


@pytest.fixture
async def serve(there: Identity) -> AsyncIterator[Serve]:
    """`await serve(talk)`: the peer, which handles each connection like this."""
    async with AsyncExitStack() as stack:

        async def started(talk: Talk) -> Peer:
            async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                stack.callback(writer.transport.abort)
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    await talk(reader, writer)
                writer.close()

            server = await stack.enter_async_context(await asyncio.start_server(handle, "127.0.0.1", 0))
            port = server.sockets[0].getsockname()[1]
            return Peer(there.rid, f"http://127.0.0.1:{port}/koi-net", there.public_key)

        yield started


async def request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """The head and the body of the next request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(line for line in head.splitlines() if line.lower().startswith("content-length"))
    return head, await reader.readexactly(int(length.split(":")[1]))


def answering(*answers: bytes) -> Talk:
    """A peer that answers the requests of a connection one after the other."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await request(reader)
            writer.write(answer)
            await writer.drain()

    return talk


async def failure(client: PeerClient, peer: Peer, seconds: float | None = None) -> tuple[str, str]:
    """The code and the message of the error of a request."""
    with pytest.raises((Refused, Unavailable)) as caught:
        await client.ask(peer, RIDS, FetchRids(), seconds=seconds)
    return caught.value.code, caught.value.message


# What is right


async def test_a_request_is_a_signed_envelope_and_so_is_its_answer(
    client: PeerClient, serve: Serve, here: Identity, there: Identity
) -> None:
    sent: list[tuple[str, bytes]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent.append(await request(reader))
        writer.write(response(signed(there, ADA, here.rid)))

    assert await client.ask(await serve(talk), RIDS, FetchRids()) == ADA
    [(head, body)] = sent
    assert head.startswith("POST /koi-net/rids/fetch HTTP/1.1\r\n")
    assert "content-type: application/json" in head.lower()
    assert body.startswith(b'{"payload":{"type":"fetch_rids","rid_types":[]},"source_node":"orn:koi-net.node:here+')


async def test_requests_share_a_connection(client: PeerClient, serve: Serve, here: Identity, there: Identity) -> None:
    answer = response(signed(there, ADA, here.rid))
    peer = await serve(answering(answer, answer, answer))
    for _ in range(3):
        assert await client.ask(peer, RIDS, FetchRids()) == ADA


async def test_a_connection_that_the_peer_has_closed_meanwhile_is_replaced(
    client: PeerClient, serve: Serve, here: Identity, there: Identity
) -> None:
    closed = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(response(signed(there, ADA, here.rid)))
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        closed.set()

    peer = await serve(talk)
    for _ in range(3):
        assert await client.ask(peer, RIDS, FetchRids()) == ADA
        await closed.wait()
        closed.clear()


@pytest.mark.parametrize("body", [b"null", b"", b" null\n"])
async def test_an_answer_without_a_payload_is_none(client: PeerClient, serve: Serve, body: bytes) -> None:
    assert await client.ask(await serve(answering(response(body))), RIDS, FetchRids()) is None


async def test_what_is_malformed_in_an_answer_costs_only_itself(
    client: PeerClient, serve: Serve, here: Identity, there: Identity
) -> None:
    text = (
        f'{{"payload":{{"type":"events_payload","events":[1]}},"source_node":"{there.rid}","target_node":"{here.rid}"}}'
    )
    raw = f'{text[:-1]},"signature":"{there.sign(text.encode())}"}}'.encode()
    incoming = await client.exchange(await serve(answering(response(raw))), POLL, PollEvents())
    assert incoming is not None
    assert incoming.envelope.payload == EventsPayload(events=[])
    assert len(incoming.malformed) == 1


# What is not


@pytest.mark.parametrize("error", ["unknown_node", "invalid_key", "invalid_signature", "invalid_target"])
async def test_an_error_of_the_protocol_is_passed_on(client: PeerClient, serve: Serve, error: str) -> None:
    body = f'{{"type":"error_response","error":"{error}"}}'.encode()
    peer = await serve(answering(response(body, "400 Bad Request")))
    with pytest.raises(Refused, match=error) as caught:
        await client.ask(peer, RIDS, FetchRids())
    assert (caught.value.code, caught.value.details["error"]) == ("KOI_REFUSED", error)


WRONG = {
    "no JSON": response(b"<html>"),
    "no envelope": response(b"{}"),
    "another error": response(b'{"type":"error_response","error":"what"}', "400 Bad Request"),
    "a server error": response(b"{}", "500 Internal Server Error"),
    "a validation error": response(b'{"detail":[]}', "422 Unprocessable Entity"),
    "a redirection": response(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:9/\r\n"),
    "too much": response(b" " * (LARGEST + 1)),
    "compressed": response(gzip.compress(b"null" * 1_000), headers="Content-Encoding: gzip\r\n"),
}


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
async def test_a_wrong_answer_is_an_error_with_a_code(client: PeerClient, serve: Serve, answer: bytes) -> None:
    assert (await failure(client, await serve(answering(answer))))[0] == "KOI_BAD_ANSWER"


async def test_answers_signed_by_another_or_for_another_are_wrong(
    client: PeerClient, serve: Serve, here: Identity, there: Identity, tmp_path: Path
) -> None:
    eve = load_or_create(tmp_path / "eve.pem", "there")
    by_eve = signed(eve, ADA, here.rid)
    forged = by_eve.replace(str(eve.rid).encode(), str(there.rid).encode())
    tampered = signed(there, ADA, here.rid).replace(b"ada/1", b"ada/2")
    for raw in (by_eve, forged, tampered, signed(there, ADA, there.rid)):
        assert (await failure(client, await serve(answering(response(raw)))))[0] == "KOI_BAD_ANSWER"


async def test_an_endless_answer_is_cut_off(client: PeerClient, serve: Serve) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1000\r\n" + b" " * 0x1000 + b"\r\n")
            await writer.drain()

    code, message = await failure(client, await serve(talk))
    assert (code, "larger than" in message) == ("KOI_BAD_ANSWER", True)


async def test_an_answer_that_comes_byte_by_byte_has_one_deadline(client: PeerClient, serve: Serve) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    code, message = await failure(client, await serve(talk), 0.2)
    assert (code, "no answer within 0.2 s" in message) == ("KOI_UNREACHABLE", True)


async def test_a_peer_that_says_nothing_has_the_same_deadline(client: PeerClient, serve: Serve) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    assert (await failure(client, await serve(talk), 0.2))[0] == "KOI_UNREACHABLE"


async def test_garbage_instead_of_http_is_an_error_with_a_code(client: PeerClient, serve: Serve) -> None:
    for garbage in (b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12", b"\x00" * 1_000):
        assert (await failure(client, await serve(answering(garbage))))[0] == "KOI_UNREACHABLE"


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1", "http://[::1", "ftp://127.0.0.1", "file:///etc/passwd", "//", "", "http://127.0.0.1:99999",
     "http://\x00", "http://" + "a" * 300, "http://ä" + "ö" * 100, "http://user:pass@127.0.0.1:1"],
)  # fmt: skip
async def test_a_url_that_leads_nowhere_is_an_error_with_a_code(client: PeerClient, there: Identity, url: str) -> None:
    assert (await failure(client, Peer(there.rid, url, there.public_key)))[0] == "KOI_UNREACHABLE"


async def test_proxies_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, here: Identity, there: Identity
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    client = PeerClient(here, seconds=5, largest=LARGEST)
    peer = await serve(answering(response(signed(there, ADA, here.rid))))
    assert await client.ask(peer, RIDS, FetchRids()) == ADA
    await client.close()


async def test_many_slow_requests_hold_up_no_other(
    client: PeerClient, serve: Serve, here: Identity, there: Identity
) -> None:
    begun = asyncio.Semaphore(0)

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun.release()
        await reader.read()

    silent = await serve(slow)
    waiting = [asyncio.create_task(client.ask(silent, RIDS, FetchRids(), seconds=20)) for _ in range(120)]
    for _ in waiting:
        await begun.acquire()
    peer = await serve(answering(response(signed(there, ADA, here.rid))))
    assert await client.ask(peer, RIDS, FetchRids()) == ADA
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
