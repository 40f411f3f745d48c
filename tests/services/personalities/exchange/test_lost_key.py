"""A node that has lost its key is another one; operators on both sides decide that it gets the names of the first."""

from __future__ import annotations

import pytest

from tests import given
from tests.services.personalities.exchange.conftest import Network, Station, pair

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]


async def refused(station: Station, peer: str) -> dict[str, int]:
    """How many messages of a peer were refused, by code."""
    found = await station.call("get_peer", peer=peer)
    return {one["code"]: one["count"] for one in found["refusals"]}


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
        return ada.rid in peers and "KOI_NAME_TAKEN" in await refused(hub, ada.rid)

    await given.until(is_refused)
    await hub.has(helper={})  # what the lost key has signed
    await hub.call("release_personality_name", name="helper", to=ada.rid)
    await hub.has(helper={})
    assert (await hub.call("get_personality", name="helper"))["provenance"]["owner"] == ada.rid
    await ada.publish("helper", mood="keen")
    await hub.has(helper={"mood": "keen"})
