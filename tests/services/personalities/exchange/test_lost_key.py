"""A node that has lost its key is another one; operators on both sides decide that it gets the names of the first."""

from __future__ import annotations

from typing import Any

import pytest

from tests import given
from tests.services.personalities.exchange.conftest import Network, Station

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]


async def refused(station: Station, peer: str) -> dict[str, int]:
    """How many messages of a peer were refused, by code."""
    found = await station.call("get_peer", peer=peer)
    return {one["code"]: one["count"] for one in found["refusals"]}


async def own(station: Station, name: str) -> dict[str, Any]:
    """A profile of the station's own."""
    return await station.call("get_own_personality", name=name)


async def test_a_node_that_lost_its_key_gets_its_names_back_with_a_new_one(network: Network) -> None:
    hub = await network("hub")
    ada = await network("ada", hub)
    await ada.publish("helper", mood="calm")
    await hub.has(helper={"mood": "calm"})
    old = ada.rid
    await ada.stop()
    (ada.project / ".aiswarm" / "koi" / "key.pem").unlink()

    ada = await network("ada", hub)
    assert ada.rid != old
    assert not (await own(ada, "helper"))["is_published"]
    await ada.call("release_personality_name", name="helper")
    assert (await own(ada, "helper"))["is_published"]

    async def is_refused() -> bool:
        peers = [peer["rid"] for peer in (await hub.call("list_peers"))["peers"]]
        return ada.rid in peers and "KOI_NAME_TAKEN" in await refused(hub, ada.rid)

    await given.until(is_refused)
    await hub.has(helper={"mood": "calm"})  # what the lost key has signed
    await hub.call("release_personality_name", name="helper", to=ada.rid)
    await hub.has(helper={"mood": "calm"})
    assert (await hub.call("get_personality", name="helper"))["provenance"]["owner"] == ada.rid
    await ada.publish("helper", mood="keen")
    await hub.has(helper={"mood": "keen"})
