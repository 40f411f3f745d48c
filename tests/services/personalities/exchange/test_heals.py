"""A node catches up after it was down or lost its data, and gets its names back if it lost its key."""

from __future__ import annotations

import pytest

from tests import given
from tests.services.personalities.exchange.conftest import Network, Station, pair
from workbench.app import Workbench
from workbench.store.queries import Query

pytestmark = [pytest.mark.anyio, pytest.mark.long]


async def test_a_node_that_was_down_catches_up(network: Network) -> None:
    hub, ada = await pair(network)
    await ada.publish("guide")
    await hub.has(helper={}, guide={})
    await hub.stop()
    await ada.publish("helper", mood="brisk")
    await ada.withdraw("guide")
    await ada.publish("scout")
    hub = await network("hub")
    await hub.has(helper={"mood": "brisk"}, scout={})
    await hub.stop()
    await ada.withdraw("helper")
    await ada.workbench.store.write(lambda tx: tx.run(Query("lose", "DELETE FROM koi_outbox")))  # nobody is told
    hub = await network("hub")
    await hub.has(scout={})


async def test_restarted_nodes_keep_their_identity_and_knowledge_and_exchange_missed_events(
    network: Network,
) -> None:
    hub, ada = await pair(network)
    contact, rid = hub.url, hub.rid
    await hub.stop()
    await ada.withdraw("helper")
    await ada.publish("scout")
    await ada.stop()
    hub = await network("hub")
    assert (hub.rid, hub.registry()) == (rid, {"helper/1": {}})
    await hub.publish("guide")
    ada = await network("ada", contact)
    await hub.has(guide={}, scout={})
    await ada.has(guide={}, scout={})


async def test_a_node_with_another_address_is_found_again(network: Network) -> None:
    hub, ada = await pair(network)
    await ada.stop()
    ada = await network("ada", hub, moves=True)
    await given.until(lambda: _knows_address(hub, ada))
    await hub.publish("guide")
    await ada.has(guide={}, helper={})


async def test_a_first_contact_that_lost_its_data_is_introduced_again(network: Network) -> None:
    hub, ada = await pair(network, koi_reconcile_seconds=10.0)  # ada may have greeted it while it was ending
    await hub.stop()
    await _forget_all(hub)
    hub = await network("hub")
    await hub.has(helper={})
    await hub.publish("guide")
    await ada.has(guide={}, helper={})


async def test_a_node_that_lost_its_data_learns_it_again(network: Network) -> None:
    hub = await network("hub")
    ada = await network("ada", hub)
    await hub.publish("guide")
    await ada.has(guide={})
    await ada.stop()
    await _forget_all(ada)
    ada = await network("ada", hub)
    await ada.has(guide={})
    await ada.publish("helper")
    await hub.has(guide={}, helper={})


async def count_refusals(station: Station, peer: str) -> dict[str, int]:
    """The numbers of a peer's refused messages, by code."""
    found = await station.call("get_peer", peer=peer)
    return {one["code"]: one["count"] for one in found["refusals"]}


@pytest.mark.timeout(120)
async def test_a_node_that_lost_its_key_gets_its_names_back_with_a_new_one(network: Network) -> None:
    hub, ada = await pair(network)
    old = ada.rid
    await ada.stop()
    (ada.project / ".aiswarm" / "koi" / "key.pem").unlink()

    ada = await network("ada", hub)
    assert ada.rid != old
    assert not (await ada.call("get_own_personality", name="helper"))["is_published"]
    await ada.call("release_personality_name", name="helper")
    assert (await ada.call("get_own_personality", name="helper"))["is_published"]

    async def is_refused() -> bool:
        peers = [peer["rid"] for peer in (await hub.call("list_peers"))["peers"]]
        return ada.rid in peers and "KOI_NAME_TAKEN" in await count_refusals(hub, ada.rid)

    await given.until(is_refused)
    await hub.has(helper={})  # what the lost key has signed
    await hub.call("release_personality_name", name="helper", to=ada.rid)
    await hub.has(helper={})
    assert (await hub.call("get_personality", name="helper"))["provenance"]["owner"] == ada.rid
    await ada.publish("helper", mood="keen")
    await hub.has(helper={"mood": "keen"})


async def _knows_address(hub: Station, node: Station) -> bool:
    peers = (await hub.call("list_peers"))["peers"]
    return [peer["base_url"] for peer in peers] == [node.url]


async def _forget_all(station: Station) -> None:
    """Lose all that a stopped node knew of the network, but not its key."""
    tables = ("personalities", "koi_bundles", "koi_nodes", "koi_edges", "koi_outbox", "koi_tombstones")
    deletions = [Query("forget", f"DELETE FROM {table}") for table in tables]
    async with Workbench.open(station.workbench.settings) as opened:
        await opened.store.write(lambda tx: [tx.run(deletion) for deletion in deletions])
