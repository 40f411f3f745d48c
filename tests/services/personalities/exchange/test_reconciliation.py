"""Comparing the knowledge of a peer with this node's does not undo concurrent changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.koi.listening import always, listening, response
from tests.services.personalities.nodes import FORGET, NEW, Here, Other, event
from workbench.koi.envelope import signed
from workbench.koi.incoming import opened
from workbench.koi.nodes import EdgeStatus, edge_rid
from workbench.koi.payloads import (
    Bundle,
    BundlesPayload,
    FetchBundles,
    FetchManifests,
    KoiEvent,
    ManifestsPayload,
    Payload,
)
from workbench.koi.requests import KoiPeer
from workbench.koi.rids import NODE, PERSONALITY
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.exchange import edges, reconciliation
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.pipeline.run import handle

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

PROVIDES = {"event": [PERSONALITY], "state": [PERSONALITY]}
HELPER = AgentPersonality("helper", "1")
Answer = Callable[[Payload], Awaitable[Payload]]
Serve = Callable[..., Awaitable[KoiPeer]]


@pytest.fixture
async def serve(here: Here) -> AsyncIterator[Serve]:
    """`await serve(node, answer)`: a node that is known here, provides personalities or something else, and answers
    requests."""
    async with AsyncExitStack() as stack:

        async def started(node: Other, answer: Answer, provides: dict[str, list[str]] = PROVIDES) -> KoiPeer:
            async def respond(body: bytes) -> bytes:
                return response(signed(node.identity, await answer(opened(body).envelope.payload), here.rid))

            url = f"{await stack.enter_async_context(listening(always(respond)))}/koi-net"
            await handle(here.ctx, [event(NEW, node.node(base_url=url, provides=provides))], node.rid)
            return KoiPeer(node.rid, url, node.identity.public_key)

        yield started


def asks_for_edge(asked: Payload) -> bool:
    """Whether a request is about the edge between the two nodes, and not about all personalities."""
    return isinstance(asked, FetchManifests) and bool(asked.rids)


async def waiting(here: Here, node: Other) -> list[KoiEvent | None]:
    """The events that a node would be sent now."""
    return [one.event for one in await here.ctx.read(lambda tx: outbox.first(tx, str(node.rid), 100))]


async def test_a_personality_republished_during_a_comparison_is_kept_by_the_peer(
    here: Here, ada: Other, serve: Serve
) -> None:
    await here.publish("helper")
    [row] = await here.rows("SELECT manifest, contents FROM koi_bundles WHERE rid LIKE '%helper/1'")
    old = Bundle.model_validate_json(f'{{"manifest": {row["manifest"]}, "contents": {row["contents"]}}}')
    await here.forget(HELPER)
    guide = ada.personality("guide")
    assert guide.manifest is not None

    async def answer(asked: Payload) -> Payload:
        if isinstance(asked, FetchBundles):
            await here.publish("helper", mood="kind")
            return BundlesPayload(bundles=[Bundle(manifest=guide.manifest, contents=guide.contents)])
        return ManifestsPayload(manifests=[] if asks_for_edge(asked) else [old.manifest, guide.manifest])

    await reconciliation.compare(here.ctx, await serve(ada, answer))
    [sent] = [one for one in await waiting(here, ada) if one is not None and one.rid == HELPER]
    assert sent.event_type is not FORGET
    assert await here.registry() == {"helper/1", "guide/1"}


async def test_a_queued_forget_is_sent_as_new_if_the_personality_is_published_again(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid))
    await here.publish("helper", mood="kind")
    await here.ctx.write(lambda tx: outbox.empty(tx, str(ada.rid)))
    await here.ctx.write(lambda tx: outbox.put(tx, str(ada.rid), HELPER, FORGET))
    [sent] = await waiting(here, ada)
    assert sent is not None
    assert (sent.rid, sent.event_type) == (HELPER, NEW)
    assert sent.contents is not None
    await here.forget(HELPER)
    [sent] = await waiting(here, ada)
    assert sent is not None
    assert (sent.rid, sent.event_type) == (HELPER, FORGET)
    assert sent.manifest is not None


async def test_an_edge_that_a_peer_has_forgotten_is_proposed_again_when_both_are_compared(
    here: Here, ada: Other, serve: Serve
) -> None:
    async def answer(asked: Payload) -> Payload:
        return ManifestsPayload(manifests=[])

    peer, rid = await serve(ada, answer), edge_rid(ada.rid, here.rid)
    here.clock.forward(1)
    await here.receive(ada, ada.edge(ada.rid, here.rid, EdgeStatus.APPROVED))
    await here.receive(ada, KoiEvent(rid=rid, event_type=FORGET))
    await edges.settle(here.ctx, here.rid)
    assert await waiting(here, ada) == []
    await reconciliation.compare(here.ctx, peer)
    [proposed] = await waiting(here, ada)
    assert proposed is not None
    assert (proposed.rid, (proposed.contents or {})["status"]) == (rid, EdgeStatus.PROPOSED)


async def test_an_edge_that_a_peer_knows_is_not_sent_again(here: Here, ada: Other, serve: Serve) -> None:
    edge = ada.edge(ada.rid, here.rid, EdgeStatus.APPROVED)
    assert edge.manifest is not None
    known = edge.manifest

    async def answer(asked: Payload) -> Payload:
        return ManifestsPayload(manifests=[known] if asks_for_edge(asked) else [])

    peer = await serve(ada, answer)
    await here.receive(ada, edge)
    await reconciliation.compare(here.ctx, peer)
    assert await waiting(here, ada) == []


async def test_only_the_last_queued_change_of_each_personality_is_sent(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid))
    await here.ctx.write(lambda tx: outbox.empty(tx, str(ada.rid)))
    for value in range(5):
        for name in ("guide", "helper"):
            await here.publish(name, value=value)
    await here.forget(AgentPersonality("guide", "1"))
    helper, guide = [one for one in await waiting(here, ada) if one is not None]
    assert (helper.rid, (helper.contents or {})["traits"][0]["value"]) == (HELPER, 4)
    assert (guide.rid.reference, guide.event_type) == ("guide/1", FORGET)


@pytest.mark.parametrize("provides", [[NODE], [NODE, PERSONALITY]], ids=["nodes", "nodes and personalities"])
async def test_nodes_that_the_first_contact_knows_are_subscribed_to_unless_it_passes_on_their_personalities(
    here: Here, ada: Other, bob: Other, serve: Serve, provides: list[str]
) -> None:
    stranger = bob.node(provides=PROVIDES)

    async def answer(asked: Payload) -> Payload:
        if isinstance(asked, FetchBundles):
            return BundlesPayload(bundles=[stranger])
        assert isinstance(asked, FetchManifests)
        return ManifestsPayload(manifests=[stranger.manifest] if NODE in asked.rid_types else [])

    relay = await serve(ada, answer, {"event": provides, "state": provides})
    await reconciliation.compare(here.ctx, relay)
    await edges.settle(here.ctx, here.rid)
    assert not [one for one in await here.outbox() if one[0] == "bob"]
    assert await here.refusals() == {}
    await here.make_relay(ada)
    await reconciliation.compare(here.ctx, relay)
    await edges.settle(here.ctx, here.rid)
    proposed = {("bob", str(edge_rid(bob.rid, here.rid)), NEW)}
    assert {one for one in await here.outbox() if one[0] == "bob"} == (set() if PERSONALITY in provides else proposed)
