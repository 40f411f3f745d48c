"""Projects in a network of koi-net's own example of a coordinator, which passes on nodes and no personalities: they
subscribe to each other, as nodes of koi-net do."""

from __future__ import annotations

import pytest

from tests import given
from tests.oracle import EDGE, NODE, Stock, StockNode
from tests.services.personalities.exchange.conftest import Network, Station

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(120)]

SIX = {"six": {"is_callable": True, "value": 6}}


async def joined(network: Network, coordinator: StockNode, name: str) -> Station:
    """A project that has met the coordinator."""
    station = await network(name, coordinator.url, koi_first_contact_rid=coordinator.rid)

    async def is_met() -> bool:
        return coordinator.rid in [peer["rid"] for peer in (await station.call("list_peers"))["peers"]]

    await given.until(is_met)
    return station


@pytest.mark.parametrize("is_first", [True, False], ids=["before the owner", "after the owner"])
async def test_a_project_hears_of_another_one_that_has_joined(network: Network, stock: Stock, is_first: bool) -> None:
    coordinator = await stock("example", interests=[NODE, EDGE], provides=[NODE, EDGE])
    if is_first:
        field = await joined(network, coordinator, "field")
        lab = await joined(network, coordinator, "lab")
        await lab.publish("ada", mood="calm", **SIX)
    else:
        lab = await joined(network, coordinator, "lab")
        await lab.publish("ada", mood="calm", **SIX)
        field = await joined(network, coordinator, "field")
    await field.has(ada={"mood": "calm", "six": 6})
    await lab.publish("ada", mood="keen", **SIX)
    await field.has(ada={"mood": "keen", "six": 6})
    await field.publish("bob")
    await lab.has(ada={"mood": "keen", "six": 6}, bob={})
    await lab.call("set_peer_permission", peer=field.rid, permission="always")
    assert (await field.call("call_tool", name="ada__six", arguments={}))["result"] == 6
    await lab.withdraw("ada")
    await field.has(bob={})
