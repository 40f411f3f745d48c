"""Two projects on one network: they meet, and each learns what the other publishes."""

from __future__ import annotations

import pytest

from tests import given
from tests.services.personalities.exchange.conftest import Network

pytestmark = pytest.mark.anyio


async def test_two_nodes_meet_approve_edges_and_learn_each_others_personalities(
    network: Network,
) -> None:
    hub = await network("hub")
    await hub.publish("guide")
    ada = await network("ada", hub)

    async def agreed() -> bool:
        found = [(await one.call("get_network"))["edges"] for one in (hub, ada)]
        return all(sorted(edge["status"] for edge in edges) == ["APPROVED", "APPROVED"] for edges in found)

    await given.until(agreed)
    [peer] = (await ada.call("list_peers"))["peers"]
    assert (peer["rid"], peer["name"], peer["is_relay"], peer["state"]) == (hub.rid, "hub", True, "reachable")
    assert (peer["sends_to_us"], peer["gets_from_us"]) == ("APPROVED", "APPROVED")
    assert (await ada.call("get_network"))["first_contact"] == {"url": hub.url, "rid": hub.rid, "error": None}

    await ada.has(guide={})  # which was published before they met
    await ada.publish("helper", mood="kind")
    await hub.has(guide={}, helper={"mood": "kind"})
    await ada.publish("helper", mood="brisk")
    await hub.has(guide={}, helper={"mood": "brisk"})
    await hub.publish("guide", pace=1)
    await ada.has(helper={"mood": "brisk"}, guide={"pace": 1})
    await ada.withdraw("helper")
    await hub.has(guide={"pace": 1})
