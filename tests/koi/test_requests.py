"""Requests to other nodes: any answer of a peer becomes a payload or a coded error, in time."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.koi.listening import Talk, as_sent, listening, request, response
from workbench.errors import Refused, Unavailable
from workbench.koi.envelope import signed
from workbench.koi.identity import NodeIdentity, load_or_create
from workbench.koi.payloads import EventsPayload, FetchRids, PollEvents, RidsPayload
from workbench.koi.requests import POLL, RIDS, KoiPeer, PeerClient
from workbench.rules.personalities.rid import AgentPersonality

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

LARGEST = 100_000
ADA = RidsPayload(rids=[AgentPersonality("ada", "1")])
Serve = Callable[[Talk], Awaitable[KoiPeer]]


@pytest.fixture
def here(tmp_path: Path) -> NodeIdentity:
    return load_or_create(tmp_path / "here.pem", "here")


@pytest.fixture
def there(tmp_path: Path) -> NodeIdentity:
    return load_or_create(tmp_path / "there.pem", "there")


@pytest.fixture
async def client(here: NodeIdentity) -> AsyncIterator[PeerClient]:
    made = PeerClient(here, seconds=5, largest=LARGEST)
    yield made
    await made.close()


@pytest.fixture
async def serve(there: NodeIdentity) -> AsyncIterator[Serve]:
    """`await serve(talk)`: the peer, which handles each connection like this."""
    async with AsyncExitStack() as stack:

        async def started(talk: Talk) -> KoiPeer:
            url = await stack.enter_async_context(listening(talk))
            return KoiPeer(there.rid, f"{url}/koi-net", there.public_key)

        yield started


@pytest.fixture
def right(here: NodeIdentity, there: NodeIdentity) -> bytes:
    return response(signed(there, ADA, here.rid))


def answering(*answers: bytes) -> Talk:
    """A peer that answers the requests of a connection one after the other."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await request(reader)
            writer.write(answer)
            await writer.drain()

    return talk


async def failure(client: PeerClient, peer: KoiPeer, seconds: float | None = None) -> tuple[str, str]:
    """The code and the message of the error of a request."""
    with pytest.raises((Refused, Unavailable)) as caught:
        await client.ask(peer, RIDS, FetchRids(), seconds=seconds)
    return caught.value.code, caught.value.message


# What is right


async def test_a_request_is_a_signed_envelope_and_so_is_its_answer(
    client: PeerClient, serve: Serve, right: bytes
) -> None:
    sent: list[tuple[str, bytes]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent.append(await request(reader))
        writer.write(right)

    assert await client.ask(await serve(talk), RIDS, FetchRids()) == ADA
    [(head, body)] = sent
    assert head.startswith("POST /koi-net/rids/fetch HTTP/1.1\r\n")
    assert "content-type: application/json" in head.lower()
    assert body.startswith(b'{"payload":{"type":"fetch_rids","rid_types":[]},"source_node":"orn:koi-net.node:here+')


async def test_requests_share_a_connection_and_replace_a_closed_one(
    client: PeerClient, serve: Serve, right: bytes
) -> None:
    connections, closed = 0, asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await answering(right, right)(reader, writer)
        writer.close()
        await writer.wait_closed()
        closed.set()

    peer = await serve(talk)
    for number in (1, 2):
        for _ in range(2):
            assert await client.ask(peer, RIDS, FetchRids()) == ADA
        await closed.wait()
        closed.clear()
        assert connections == number


@pytest.mark.parametrize("body", [b"null", b"", b" null\n"])
async def test_an_answer_without_a_payload_is_none(client: PeerClient, serve: Serve, body: bytes) -> None:
    assert await client.ask(await serve(answering(response(body))), RIDS, FetchRids()) is None


async def test_a_malformed_item_of_an_answer_costs_only_itself(
    client: PeerClient, serve: Serve, here: NodeIdentity, there: NodeIdentity
) -> None:
    raw = as_sent(there, '{"type":"events_payload","events":[1]}', here)
    incoming = await client.exchange(await serve(answering(response(raw))), POLL, PollEvents())
    assert incoming is not None
    assert incoming.envelope.payload == EventsPayload(events=[])
    assert len(incoming.malformed) == 1


# What is not


async def test_an_error_of_the_protocol_is_passed_on(client: PeerClient, serve: Serve) -> None:
    for error in ("unknown_node", "invalid_key", "invalid_signature", "invalid_target"):
        body = f'{{"type":"error_response","error":"{error}"}}'.encode()
        peer = await serve(answering(response(body, "400 Bad Request")))
        with pytest.raises(Refused, match=error) as caught:
            await client.ask(peer, RIDS, FetchRids())
        assert (caught.value.code, caught.value.details["error"]) == ("KOI_REFUSED", error)


async def test_a_wrong_answer_is_an_error_with_a_code(client: PeerClient, serve: Serve) -> None:
    for answer in (
        response(b"<html>"),
        response(b"{}"),
        response(b'{"type":"error_response","error":"what"}', "400 Bad Request"),
        response(b"{}", "500 Internal Server Error"),
        response(b'{"detail":[]}', "422 Unprocessable Entity"),
        response(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:9/\r\n"),
        response(b" " * (LARGEST + 1)),
        response(gzip.compress(b"null" * 1_000), headers="Content-Encoding: gzip\r\n"),
    ):
        assert (await failure(client, await serve(answering(answer))))[0] == "KOI_BAD_ANSWER", answer[:200]


async def test_answers_signed_by_another_or_for_another_are_wrong(
    client: PeerClient, serve: Serve, here: NodeIdentity, there: NodeIdentity, tmp_path: Path
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


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing."""
    await reader.read()


async def test_an_answer_has_one_deadline_also_if_it_comes_byte_by_byte(client: PeerClient, serve: Serve) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    for peer in (talk, silent):
        code, message = await failure(client, await serve(peer), 0.2)
        assert (code, "no answer within 0.2 s" in message) == ("KOI_UNREACHABLE", True)


async def test_garbage_instead_of_http_is_an_error_with_a_code(client: PeerClient, serve: Serve) -> None:
    for garbage in (b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12", b"\x00" * 1_000):
        assert (await failure(client, await serve(answering(garbage))))[0] == "KOI_UNREACHABLE"


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1", "http://[::1", "ftp://127.0.0.1", "file:///etc/passwd", "//", "", "http://127.0.0.1:99999",
     "http://\x00", "http://" + "a" * 300, "http://ä" + "ö" * 100, "http://user:pass@127.0.0.1:1"],
)  # fmt: skip
async def test_a_url_that_leads_nowhere_is_an_error_with_a_code(
    client: PeerClient, there: NodeIdentity, url: str
) -> None:
    assert (await failure(client, KoiPeer(there.rid, url, there.public_key)))[0] == "KOI_UNREACHABLE"


async def test_proxies_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, serve: Serve, here: NodeIdentity, right: bytes
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    client = PeerClient(here, seconds=5, largest=LARGEST)
    assert await client.ask(await serve(answering(right)), RIDS, FetchRids()) == ADA
    await client.close()


async def test_many_slow_requests_hold_up_no_other(client: PeerClient, serve: Serve, right: bytes) -> None:
    begun = asyncio.Semaphore(0)

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun.release()
        await reader.read()

    peer = await serve(slow)
    waiting = [asyncio.create_task(client.ask(peer, RIDS, FetchRids(), seconds=20)) for _ in range(120)]
    for _ in waiting:
        await begun.acquire()
    assert await client.ask(await serve(answering(right)), RIDS, FetchRids()) == ADA
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
