"""What happens while a peer is compared with what is known here is not taken back by the comparison."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress

import pytest

from tests.services.personalities.nodes import FORGET, NEW, Here, Other, event
from workbench.koi.envelope import signed
from workbench.koi.payloads import Bundle, BundlesPayload, Event, ManifestsPayload, Payload
from workbench.koi.requests import BUNDLES, MANIFESTS, Peer
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.exchange import reconciliation
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.pipeline.run import handle

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

HELPER = AgentPersonality("helper", "1")
Answer = Callable[[str], Awaitable[Payload]]
Serve = Callable[[Other, Answer], Awaitable[Peer]]


@pytest.fixture
async def serve(here: Here) -> AsyncIterator[Serve]:
    """`await serve(node, answer)`: a node that is known here, and answers requests by their path."""
    async with AsyncExitStack() as stack:

        async def started(node: Other, answer: Answer) -> Peer:
            async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                stack.callback(writer.transport.abort)
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    while True:
                        body = signed(node.identity, await answer(await _path(reader)), here.rid)
                        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

            server = await stack.enter_async_context(await asyncio.start_server(talk, "127.0.0.1", 0))
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/koi-net"
            await handle(here.ctx, [event(NEW, node.node(base_url=url))], node.rid)
            return Peer(node.rid, url, node.identity.public_key)

        yield started


async def _path(reader: asyncio.StreamReader) -> str:
    """The endpoint of the next request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(line for line in head.splitlines() if line.lower().startswith("content-length"))
    await reader.readexactly(int(length.split(":")[1]))
    return head.split()[1].removeprefix("/koi-net")


async def withdraw(here: Here, name: str) -> None:
    await handle(here.ctx, [Event(rid=AgentPersonality(name, "1"), event_type=FORGET)], None)


async def waiting(here: Here, node: Other) -> list[Event | None]:
    """What a node would be sent now."""
    return [one.event for one in await here.ctx.read(lambda tx: outbox.first(tx, str(node.rid), 100))]


async def test_what_is_published_again_during_a_comparison_is_not_forgotten_by_the_peer(
    here: Here, ada: Other, serve: Serve
) -> None:
    await here.publish("helper")
    [row] = await here.rows("SELECT manifest, contents FROM koi_bundles WHERE rid LIKE '%helper/1'")
    old = Bundle.model_validate_json(f'{{"manifest": {row["manifest"]}, "contents": {row["contents"]}}}')
    await withdraw(here, "helper")
    guide = ada.personality("guide")
    assert guide.manifest is not None

    async def answer(path: str) -> Payload:
        if path == MANIFESTS:
            return ManifestsPayload(manifests=[old.manifest, guide.manifest])
        assert path == BUNDLES
        await here.publish("helper", mood="kind")
        return BundlesPayload(bundles=[Bundle(manifest=guide.manifest, contents=guide.contents)])

    await reconciliation.compare(here.ctx, await serve(ada, answer))
    [sent] = [one for one in await waiting(here, ada) if one is not None and one.rid == HELPER]
    assert sent.event_type is not FORGET
    assert await here.registry() == {"helper/1", "guide/1"}


async def test_a_forget_that_waits_does_not_deny_what_is_published_by_then(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake())
    await here.publish("helper", mood="kind")
    await here.ctx.write(lambda tx: outbox.put(tx, str(ada.rid), HELPER, FORGET))
    [sent] = await waiting(here, ada)
    assert sent is not None
    assert (sent.rid, sent.event_type) == (HELPER, NEW)
    assert sent.contents is not None


async def test_a_forget_that_waits_says_up_to_when(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid))
    await here.publish("helper")
    await here.ctx.write(lambda tx: outbox.empty(tx, str(ada.rid)))
    await withdraw(here, "helper")
    [sent] = await waiting(here, ada)
    assert sent is not None
    assert (sent.rid, sent.event_type) == (HELPER, FORGET)
    assert sent.manifest is not None
