"""Unmodified nodes of koi-net and projects on one network.

koi-net does not send again what a peer did not receive in time; comparing what both know heals that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests import given
from tests.oracle import NODE, PERSONALITY, Stock, StockNode
from tests.services.personalities.exchange.conftest import Network, Station
from workbench.koi.nodes import edge_rid
from workbench.koi.rids import parse_node
from workbench.services.personalities import bundles

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(180)]

EDGE = "orn:koi-net.edge"


def rid_of(name: str) -> str:
    """The RID of version 1 of a personality."""
    return f"{PERSONALITY}:{name}/1"


def profile(node: StockNode, name: str, **traits: Any) -> dict[str, Any]:
    """The contents of a personality of a stock node."""
    listed = [{"name": key, "description": "", "type": "str", "value": value} for key, value in traits.items()]
    return {"rid": rid_of(name), "node_rid": node.rid, "base_url": node.url, "traits": listed}


def contact(station: Station) -> dict[str, str]:
    """How a stock node is told whom to contact first."""
    return {"rid": station.rid, "url": station.url}


async def approved(node: StockNode, source: str, target: str) -> None:
    """Return once a stock node has an approved edge from one node to another."""

    async def is_there() -> bool:
        edges = [await node.ask("cached", rid=rid) for rid in await node.ask("rids", EDGE)]
        found = [edge["contents"] for edge in edges if edge]
        ends = [(edge["source"], edge["target"], edge["status"]) for edge in found]
        return (source, target, "APPROVED") in ends

    await node.until(is_there)


async def _has_sent_everything(station: Station, peer: str) -> bool:
    found = [one for one in (await station.call("list_peers"))["peers"] if one["rid"] == peer]
    return bool(found) and found[0]["waiting"] == 0


@pytest.mark.parametrize("hash_seed", range(6))
async def test_a_stock_agent_joins_and_its_personalities_are_known(
    network: Network, stock: Stock, hash_seed: int
) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    agent = await stock("agent", first_contact=contact(hub), hash_seed=hash_seed)
    await approved(agent, agent.rid, hub.rid)
    await agent.ask("publish", rid=rid_of("helper"), contents=profile(agent, "helper", mood="kind"))
    await hub.has(helper={"mood": "kind"})
    await agent.ask("publish", rid=rid_of("helper"), contents=profile(agent, "helper", mood="brisk"))
    await hub.has(helper={"mood": "brisk"})
    await agent.ask("forget", rid=rid_of("helper"))
    await hub.has()


async def test_a_project_joins_a_stock_coordinator_which_has_its_exact_bundles(network: Network, stock: Stock) -> None:
    coordinator = await stock("coordinator")
    ada = await network("ada", coordinator.url, koi_first_contact_rid=coordinator.rid)
    await ada.publish("helper", mood="kind", share=0.25, nothing=None, words=["ä", "日本"])
    await approved(coordinator, ada.rid, coordinator.rid)
    await coordinator.knows(rid_of("helper"))
    await ada.publish("helper", mood="brisk", share=1.5, nothing=None)
    await coordinator.final(rid_of("helper"), "UPDATE")
    own = await ada.workbench.store.read(lambda tx: bundles.find(tx, rid_of("helper")))
    assert own is not None
    assert await coordinator.ask("cached", rid=rid_of("helper")) == own.bundle.model_dump(mode="json")
    await ada.withdraw("helper")
    await coordinator.lacks(rid_of("helper"))


async def test_what_a_stock_coordinator_relays_is_accepted(network: Network, stock: Stock) -> None:
    coordinator = await stock("coordinator")
    ada = await network("ada", coordinator.url, koi_first_contact_rid=coordinator.rid)
    agent = await stock("agent", first_contact={"rid": coordinator.rid, "url": coordinator.url})
    await approved(coordinator, coordinator.rid, ada.rid)
    await approved(agent, agent.rid, coordinator.rid)
    await agent.ask("publish", rid=rid_of("scout"), contents=profile(agent, "scout"))
    await ada.has(scout={})
    await agent.ask("forget", rid=rid_of("scout"))
    await ada.has()


async def test_personalities_are_relayed_to_a_stock_subscriber(network: Network, stock: Stock) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    ada = await network("ada", hub)
    await ada.publish("early")
    await hub.has(early={})
    subscriber = await stock("agent", interests=[NODE, PERSONALITY], first_contact=contact(hub))
    await approved(subscriber, hub.rid, subscriber.rid)
    await subscriber.knows(rid_of("early"))
    await ada.publish("helper", mood="kind")
    assert (await subscriber.knows(rid_of("helper")))["contents"]["node_rid"] == ada.rid
    await ada.withdraw("helper")
    await subscriber.lacks(rid_of("helper"))


async def test_a_stock_partial_node_polls(network: Network, stock: Stock) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    partial = await stock("partial", first_contact=contact(hub))
    await approved(partial, hub.rid, partial.rid)
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
    await approved(node, node.rid, hub.rid)
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

    async def is_known() -> bool:
        return await contents(rid_of("helper")) is not None

    async def is_forgotten() -> bool:
        return await contents(rid_of("helper")) is None

    await polls(is_approved)
    await hub.publish("helper", mood="kind")
    await polls(is_known)
    await hub.withdraw("helper")
    await polls(is_forgotten)
    assert {rid, rid_of("early"), rid_of("helper")} <= set(polled)


async def test_a_stock_node_fetches_what_a_project_has_and_checks_the_answers(network: Network, stock: Stock) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    await hub.publish("helper", mood="kind")
    node = await stock("agent", first_contact=contact(hub))
    await node.knows(hub.rid)
    assert (await node.ask("fetch_rids", hub.rid, [PERSONALITY]))["rids"] == [rid_of("helper")]
    manifests = await node.ask("fetch_manifests", hub.rid, [rid_of("helper"), rid_of("eve")])
    assert [one["rid"] for one in manifests["manifests"]] == [rid_of("helper")]
    assert manifests["not_found"] == [rid_of("eve")]
    [bundle] = (await node.ask("fetch_bundles", hub.rid, [rid_of("helper")]))["bundles"]
    assert bundle["manifest"] == manifests["manifests"][0]
    assert bundle["contents"]["traits"][0]["value"] == "kind"


async def test_a_stock_agent_that_restarts_is_known_again(network: Network, stock: Stock) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    agent = await stock("agent", first_contact=contact(hub))
    await approved(agent, agent.rid, hub.rid)
    await agent.ask("publish", rid=rid_of("helper"), contents=profile(agent, "helper"))
    await hub.has(helper={})
    await agent.kill()
    agent = await stock("agent", directory=agent.directory)
    await agent.ask("publish", rid=rid_of("scout"), contents=profile(agent, "scout"))
    await hub.has(helper={}, scout={})


async def test_a_project_that_restarts_learns_what_a_stock_agent_forgot_meanwhile(
    network: Network, stock: Stock
) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    agent = await stock("agent", first_contact=contact(hub))
    await approved(agent, agent.rid, hub.rid)
    for name in ("helper", "scout"):
        await agent.ask("publish", rid=rid_of(name), contents=profile(agent, name))
    await hub.has(helper={}, scout={})
    await hub.stop()
    await agent.ask("forget", rid=rid_of("helper"))
    await agent.lacks(rid_of("helper"))
    hub = await network("hub", koi_reconcile_seconds=2.0)
    await hub.has(scout={})


async def test_a_stock_coordinator_that_has_lost_its_cache_is_greeted_anew(network: Network, stock: Stock) -> None:
    coordinator = await stock("coordinator")
    ada = await network("ada", coordinator.url, koi_first_contact_rid=coordinator.rid)
    await ada.publish("helper")
    await coordinator.knows(rid_of("helper"))
    await coordinator.stop()
    for file in (coordinator.directory / ".rid_cache").iterdir():
        file.unlink()
    coordinator = await stock("coordinator", directory=coordinator.directory)
    await ada.publish("scout")
    await coordinator.knows(rid_of("scout"))
    await coordinator.knows(rid_of("helper"))


async def test_a_first_contact_that_does_not_say_who_it_is_has_to_be_named(network: Network, stock: Stock) -> None:
    coordinator = await stock("coordinator")
    ada = await network("ada", coordinator.url)

    async def says_so() -> bool:
        error = (await ada.call("get_network"))["first_contact"]["error"]
        return error is not None and "koi_first_contact_rid" in error

    await given.until(says_so)


@pytest.mark.parametrize("version", ["1.3.2", "2.0.7"])
async def test_older_versions_of_koi_net_take_part(network: Network, stock: Stock, version: str) -> None:
    hub = await network("hub", koi_reconcile_seconds=2.0)
    agent = await stock("agent", first_contact=contact(hub), version=version)
    await approved(agent, agent.rid, hub.rid)
    await agent.ask("publish", rid=rid_of("helper"), contents=profile(agent, "helper"))
    await hub.has(helper={})
    await agent.ask("forget", rid=rid_of("helper"))
    await hub.has()
