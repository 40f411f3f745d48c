"""Unmodified nodes of koi-net refuse what a project sends: it records that, goes on, and recovers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests import given
from tests.oracle import PERSONALITY, Stock
from tests.services.personalities.exchange.conftest import Network, Station
from tests.services.personalities.exchange.test_stock_nodes import (
    agree_on_edge,
    approve_edge,
    is_reachable,
    profile,
    rid_of,
)
from workbench.koi.identity import NodeIdentity, load_or_create
from workbench.koi.nodes import EdgeProfile, EdgeStatus, EdgeType, edge_rid
from workbench.koi.payloads import EventType, KoiEvent
from workbench.koi.rids import parse_node
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.pipeline.run import handle

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.long,
    pytest.mark.timeout(180),
    pytest.mark.sqlite("what other nodes make of ours does not depend on the store"),
]

APPROVED = ("POLL", "APPROVED")


def sign_as(station: Station, identity: NodeIdentity) -> NodeIdentity:
    """Have a project sign its requests with another key; the identity that it had."""
    client = station.workbench._ctx.node.presence.client  # type: ignore[union-attr]
    before, client._identity = client._identity, identity
    return before


async def peer_of(station: Station, rid: str) -> dict[str, Any]:
    """A peer as a project shows it: `peer`, `refusals`, `rejections`."""
    return await station.call("get_peer", peer=rid)


async def test_a_project_whose_signature_is_refused_backs_off_and_recovers(network: Network, stock: Stock) -> None:
    coordinator = await stock("coordinator")
    ada = await network("ada", coordinator.url, koi_first_contact_rid=coordinator.rid)
    await ada.publish("helper")
    await approve_edge(coordinator, ada.rid, coordinator.rid)
    await coordinator.knows(rid_of("helper"))
    await agree_on_edge(coordinator, ada, coordinator.rid, ada.rid)
    await given.until(lambda: is_reachable(ada, coordinator.rid))  # so that nothing but what follows waits
    own = sign_as(ada, replace(load_or_create(ada.project / "other.pem", "other"), rid=parse_node(ada.rid)))
    await ada.publish("scout")

    async def backs_off() -> bool:
        peer = (await peer_of(ada, coordinator.rid))["peer"]
        return peer["failures"] >= 3 and peer["retry_at"] is not None and peer["waiting"] == 1

    await given.until(backs_off)
    peer = (await peer_of(ada, coordinator.rid))["peer"]
    assert (peer["state"], peer["last_error"]) == (
        "unreachable",
        f"{coordinator.rid} refused the request: invalid_signature.",
    )
    assert await coordinator.ask("rids", PERSONALITY) == [rid_of("helper")]
    sign_as(ada, own)
    await coordinator.knows(rid_of("scout"))
    await given.until(lambda: is_reachable(ada, coordinator.rid))


async def test_an_event_that_a_stock_node_can_never_read_holds_up_no_other(network: Network, stock: Stock) -> None:
    coordinator = await stock("coordinator")
    ada = await network("ada", coordinator.url, koi_first_contact_rid=coordinator.rid, koi_reconcile_seconds=0.5)
    bob = await network("bob", ada)
    await approve_edge(coordinator, ada.rid, coordinator.rid)
    unreadable = f"{PERSONALITY}:helper/1+local"
    await ada.call("publish_personality", name="helper", version="1+local")
    await ada.publish("scout")
    await coordinator.knows(rid_of("scout"))
    await given.until(lambda: set(bob.registry()) == {"helper/1+local", "scout/1"})

    async def is_recorded() -> bool:
        found = await peer_of(ada, coordinator.rid)
        [one] = found["rejections"] or [{"rid": None, "code": None}]
        counts = (found["peer"]["rejected"], found["peer"]["waiting"], found["peer"]["failures"])
        return (one["rid"], one["code"], *counts) == (unreadable, "KOI_BAD_ANSWER", 1, 0, 0)

    await given.until(is_recorded)
    first = (await peer_of(ada, coordinator.rid))["rejections"]
    await compared_again(ada, coordinator.rid)
    await compared_again(ada, coordinator.rid)
    assert (await peer_of(ada, coordinator.rid))["rejections"] == first  # it was not sent again
    await ada.call("publish_personality", name="helper", version="2")
    await coordinator.knows(f"{PERSONALITY}:helper/2")
    assert unreadable not in await coordinator.ask("rids", PERSONALITY)


async def test_a_project_polls_a_stock_node(network: Network, stock: Stock) -> None:
    coordinator = await stock("coordinator")
    ada = await network("ada", coordinator.url, koi_first_contact_rid=coordinator.rid, koi_poll_seconds=0.2)
    await agree_on_edge(coordinator, ada, coordinator.rid, ada.rid)
    ctx, source, me = ada.workbench._ctx, parse_node(coordinator.rid), parse_node(ada.rid)
    rid = edge_rid(source, me)
    edge = EdgeProfile(
        source=source, target=me, edge_type=EdgeType.POLL, status=EdgeStatus.PROPOSED, rid_types=[PERSONALITY]
    )
    await handle(ctx, [KoiEvent(rid=rid, event_type=EventType.UPDATE, contents=edge.model_dump(mode="json"))], None)
    await ctx.write(lambda tx: outbox.put(tx, coordinator.rid, rid, EventType.UPDATE))
    ctx.node.has_mail.set()

    async def is_agreed() -> bool:
        found = await coordinator.ask("cached", rid=str(rid))
        return found is not None and (found["contents"]["edge_type"], found["contents"]["status"]) == APPROVED

    await coordinator.until(is_agreed)
    await given.until(lambda: coordinator.log.count("POST /koi-net/events/poll") >= 2)
    await coordinator.ask("publish", rid=rid_of("guide"), contents=profile(coordinator, "guide"))
    await ada.has(guide={})
    await coordinator.ask("forget", rid=rid_of("guide"))
    await ada.has()
    await given.until(lambda: is_reachable(ada, coordinator.rid))


async def compared_again(station: Station, rid: str) -> None:
    """Return once a project has compared anew what a peer knows."""
    compared = station.workbench._ctx.node.presence.compared  # type: ignore[union-attr]
    before = compared.get(rid)
    await given.until(lambda: rid in compared and compared[rid] != before)
