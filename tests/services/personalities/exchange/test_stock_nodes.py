"""Unmodified nodes of koi-net and projects on one network.

koi-net does not send again what a peer did not receive in time; comparing what both know heals that.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests import given
from tests.oracle import NODE, PERSONALITY, VERSION, Stock, StockNode
from tests.services.personalities.exchange.conftest import Network, Station
from workbench.koi.nodes import edge_rid
from workbench.koi.rids import parse_node
from workbench.services.personalities import bundles
from workbench.state.settings import Settings

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.long,
    pytest.mark.timeout(180),
    pytest.mark.sqlite("what other nodes make of ours does not depend on the store"),
]

EDGE = "orn:koi-net.edge"


def rid_of(name: str) -> str:
    """The RID of version 1 of a personality."""
    return f"{PERSONALITY}:{name}/1"


def profile(node: StockNode, name: str, **traits: Any) -> dict[str, Any]:
    """The contents of a personality of a stock node."""
    listed = [{"name": key, "description": "", "type": "str", "value": value} for key, value in traits.items()]
    return {"rid": rid_of(name), "node_rid": node.rid, "base_url": node.url, "traits": listed}


def contact(station: Station) -> dict[str, str]:
    """The first contact in the configuration of a stock node."""
    return {"rid": station.rid, "url": station.url}


async def approve_edge(node: StockNode, source: str, target: str) -> None:
    """Return once a stock node has an approved edge from one node to another."""

    async def is_there() -> bool:
        edges = [await node.ask("cached", rid=rid) for rid in await node.ask("rids", EDGE)]
        found = [edge["contents"] for edge in edges if edge]
        ends = [(edge["source"], edge["target"], edge["status"]) for edge in found]
        return (source, target, "APPROVED") in ends

    await node.until(is_there)


async def agree_on_edge(node: StockNode, station: Station, source: str, target: str) -> None:
    """Return once a stock node and a project have the same approved edge, so that nothing about it is under way.

    A node proposes an edge again that its peer does not show yet. The peer approves that as well, with a date of its
    own, and whatever is dated before that approval is then ignored.
    """
    rid = edge_rid(parse_node(source), parse_node(target))

    async def is_the_same() -> bool:
        theirs = await node.ask("cached", rid=str(rid))
        own = await station.workbench.store.read(lambda tx: bundles.find(tx, rid))
        if theirs is None or own is None:
            return False
        return theirs["contents"]["status"] == "APPROVED" and theirs == own.bundle.model_dump(mode="json")

    await node.until(is_the_same)


async def is_reachable(station: Station, rid: str) -> bool:
    """Whether a peer of a project has failed in nothing, and has been sent everything."""
    peer = (await station.call("get_peer", peer=rid))["peer"]
    return (peer["state"], peer["failures"], peer["waiting"]) == ("reachable", 0, 0)


async def _has_sent_everything(station: Station, peer: str) -> bool:
    peers = [one for one in (await station.call("list_peers"))["peers"] if one["rid"] == peer]
    return bool(peers) and peers[0]["waiting"] == 0


AS_THEY_COME = {
    name: Settings.model_fields[name].default
    for name in ("koi_reconcile_seconds", "koi_retry_base_seconds", "koi_retry_cap_seconds")
}


@pytest.mark.parametrize(
    ("version", "hash_seed", "settings"),
    [
        (VERSION, 0, AS_THEY_COME),
        (VERSION, 1 + random.randrange(5), {"koi_reconcile_seconds": 2.0}),
        ("1.3.2", 0, {"koi_reconcile_seconds": 2.0}),
        ("2.0.7", 0, {"koi_reconcile_seconds": 2.0}),
    ],
    ids=["with the settings as they come", "with its handlers in any order", "of version 1", "of version 2.0"],
)
async def test_a_stock_agent_joins_and_its_personalities_are_known(
    network: Network, stock: Stock, version: str, hash_seed: int, settings: dict[str, Any]
) -> None:
    print("hash seed:", hash_seed)
    hub = await network("hub", **settings)
    agent = await stock("agent", first_contact=contact(hub), version=version, hash_seed=hash_seed)
    await approve_edge(agent, agent.rid, hub.rid)
    await agent.ask("publish", rid=rid_of("helper"), contents=profile(agent, "helper", mood="kind"))
    await hub.has(helper={"mood": "kind"})
    await agent.ask("publish", rid=rid_of("helper"), contents=profile(agent, "helper", mood="brisk"))
    await hub.has(helper={"mood": "brisk"})
    await agent.ask("forget", rid=rid_of("helper"))
    await hub.has()


async def test_a_project_and_a_stock_coordinator_exchange_exact_bundles(network: Network, stock: Stock) -> None:
    coordinator = await stock("coordinator")
    eve = await network("eve", coordinator.url)

    async def has_to_be_told_who_it_is() -> bool:
        error = (await eve.call("get_network"))["first_contact"]["error"]
        return error is not None and "koi_first_contact_rid" in error

    await given.until(has_to_be_told_who_it_is)

    ada = await network("ada", coordinator.url, koi_first_contact_rid=coordinator.rid)
    await ada.publish("helper", mood="kind", share=0.25, nothing=None, words=["ä", "日本"])
    await approve_edge(coordinator, ada.rid, coordinator.rid)
    await coordinator.knows(rid_of("helper"))
    await ada.publish("helper", mood="brisk", share=1.5, nothing=None)
    await coordinator.final(rid_of("helper"), "UPDATE")
    own = await ada.workbench.store.read(lambda tx: bundles.find(tx, rid_of("helper")))
    assert own is not None
    assert await coordinator.ask("cached", rid=rid_of("helper")) == own.bundle.model_dump(mode="json")
    await ada.withdraw("helper")
    await coordinator.lacks(rid_of("helper"))

    agent = await stock("agent", first_contact={"rid": coordinator.rid, "url": coordinator.url})
    await approve_edge(coordinator, coordinator.rid, ada.rid)
    await approve_edge(agent, agent.rid, coordinator.rid)
    await agent.ask("publish", rid=rid_of("scout"), contents=profile(agent, "scout"))
    await ada.has(scout={})
    await agent.ask("forget", rid=rid_of("scout"))
    await ada.has()


async def test_a_stock_subscriber_is_told_of_personalities_and_checks_what_it_fetches(
    network: Network, stock: Stock
) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    ada = await network("ada", hub)
    await ada.publish("early")
    await hub.has(early={})
    subscriber = await stock("agent", interests=[NODE, PERSONALITY], first_contact=contact(hub))
    await approve_edge(subscriber, hub.rid, subscriber.rid)
    await subscriber.knows(rid_of("early"))
    await ada.publish("helper", mood="kind")
    assert (await subscriber.knows(rid_of("helper")))["contents"]["node_rid"] == ada.rid
    assert (await subscriber.ask("fetch_rids", hub.rid, [PERSONALITY]))["rids"] == [rid_of("early"), rid_of("helper")]
    manifests = await subscriber.ask("fetch_manifests", hub.rid, [rid_of("helper"), rid_of("eve")])
    assert [one["rid"] for one in manifests["manifests"]] == [rid_of("helper")]
    assert manifests["not_found"] == [rid_of("eve")]
    [bundle] = (await subscriber.ask("fetch_bundles", hub.rid, [rid_of("helper")]))["bundles"]
    assert bundle["manifest"] == manifests["manifests"][0]
    assert bundle["contents"]["traits"][0]["value"] == "kind"
    await ada.withdraw("helper")
    await subscriber.lacks(rid_of("helper"))


async def test_a_stock_partial_node_polls(network: Network, stock: Stock) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    partial = await stock("partial", first_contact=contact(hub))
    await approve_edge(partial, hub.rid, partial.rid)
    await hub.publish("helper", mood="kind")
    await partial.knows(rid_of("helper"))
    await hub.publish("helper", mood="brisk")
    await partial.final(rid_of("helper"), "UPDATE")
    await hub.withdraw("helper")
    await partial.lacks(rid_of("helper"))


async def test_a_stock_full_node_that_wants_to_poll_gets_everything_by_its_polls(
    network: Network, stock: Stock
) -> None:
    hub = await network("hub")
    await hub.publish("early")
    node = await stock("agent", interests=["orn:something.else"], first_contact=contact(hub))
    await approve_edge(node, node.rid, hub.rid)
    await given.until(lambda: _has_sent_everything(hub, node.rid))
    polled: list[str] = []

    async def polls(is_so: Callable[[], Awaitable[bool]]) -> None:
        async def has_polled() -> bool:
            polled.extend(await node.ask("poll_neighbors"))
            return await is_so()

        await node.until(has_polled)

    async def contents(rid: str) -> Any:
        found = await node.ask("cached", rid=rid)
        return found and found["contents"]

    rid = str(edge_rid(parse_node(hub.rid), parse_node(node.rid)))
    edge = {"source": hub.rid, "target": node.rid, "edge_type": "POLL", "rid_types": [PERSONALITY]}
    await node.ask("publish", rid=rid, contents={**edge, "status": "PROPOSED"})

    async def is_approved() -> bool:
        found = await contents(rid)
        return found is not None and found["status"] == "APPROVED" and await contents(rid_of("early")) is not None

    async def is_known(expected: bool = True) -> bool:
        return (await contents(rid_of("helper")) is not None) is expected

    await polls(is_approved)
    await hub.publish("helper", mood="kind")
    await polls(is_known)
    await hub.withdraw("helper")
    await polls(lambda: is_known(False))
    assert {rid, rid_of("early"), rid_of("helper")} <= set(polled)


async def test_a_restarted_stock_agent_and_project_catch_up_with_each_other(network: Network, stock: Stock) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    agent = await stock("agent", first_contact=contact(hub))
    await approve_edge(agent, agent.rid, hub.rid)
    await agent.ask("publish", rid=rid_of("helper"), contents=profile(agent, "helper"))
    await hub.has(helper={})
    await agent.kill()
    agent = await stock("agent", directory=agent.directory)
    await agent.ask("publish", rid=rid_of("scout"), contents=profile(agent, "scout"))
    await hub.has(helper={}, scout={})
    await hub.stop()
    await agent.ask("forget", rid=rid_of("helper"))
    await agent.lacks(rid_of("helper"))
    hub = await network("hub", koi_reconcile_seconds=2.0)
    await hub.has(scout={})


async def test_a_stock_coordinator_that_forgot_a_project_is_introduced_again(network: Network, stock: Stock) -> None:
    coordinator = await stock("coordinator")
    ada = await network("ada", coordinator.url, koi_first_contact_rid=coordinator.rid)
    await ada.publish("helper")
    await approve_edge(coordinator, ada.rid, coordinator.rid)
    await coordinator.knows(rid_of("helper"))
    await coordinator.ask("forget", rid=ada.rid)
    await coordinator.lacks(ada.rid)
    await ada.publish("scout")
    await coordinator.knows(rid_of("scout"))
    await coordinator.knows(ada.rid)
    await given.until(lambda: is_reachable(ada, coordinator.rid))

    await coordinator.stop()
    for file in (coordinator.directory / ".rid_cache").iterdir():
        file.unlink()
    coordinator = await stock("coordinator", directory=coordinator.directory)
    await ada.publish("guide")
    for name in ("guide", "scout", "helper"):
        await coordinator.knows(rid_of(name))
