"""Peers are independent of one another, and blocked ones get nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests import given
from tests.koi.listening import listening
from tests.services.personalities.exchange.conftest import Network, Station, pair

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.fixture
async def silence() -> AsyncIterator[str]:
    """The URL of something that takes requests, and answers none."""

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(read) as url:
        yield f"{url}/koi-net"


async def test_a_peer_that_is_down_or_silent_delays_no_other(network: Network, silence: str) -> None:
    hub = await network("hub")
    dead = await network("dead", hub)
    await given.until(lambda: _knows(hub, "dead"))
    await dead.stop()
    mute = await network("mute", hub, koi_base_url=silence)
    ada = await network("ada", hub)
    await hub.publish("guide")
    await given.until(lambda: _waits(hub, ("dead", "mute")))
    await hub.publish("scout")
    await ada.has(guide={}, scout={})
    assert mute.registry() == {}


async def test_a_neighbour_that_was_killed_is_unreachable_soon_although_nothing_is_sent_to_it(network: Network) -> None:
    hub, _ = await pair(network)
    watcher = await network("watcher", hub, koi_ask_seconds=0.2)
    await watcher.has(helper={})

    async def state() -> str:
        peers = {peer["name"]: peer for peer in (await watcher.call("list_peers"))["peers"]}
        return str(peers["hub"]["state"])

    before = (await watcher.call("get_personality", name="helper"))["provenance"]
    assert (await state(), before["freshness"]) == ("reachable", "live")
    await hub.stop()
    await given.until(lambda: _is(state, "unreachable"))
    after = (await watcher.call("get_personality", name="helper"))["provenance"]
    assert (after["freshness"], after["answered_at"] >= before["answered_at"]) == ("stale", True)


async def _is(state: Callable[[], Awaitable[str]], expected: str) -> bool:
    return await state() == expected


async def _knows(hub: Station, name: str) -> bool:
    return name in [peer["name"] for peer in (await hub.call("list_peers"))["peers"]]


async def _waits(hub: Station, names: tuple[str, ...]) -> bool:
    peers = {peer["name"]: peer for peer in (await hub.call("list_peers"))["peers"]}
    return all(name in peers and peers[name]["waiting"] for name in names)


async def test_another_node_at_the_address_of_the_first_contact_is_refused_and_shown(network: Network) -> None:
    hub, ada = await pair(network)
    pinned = hub.rid
    await hub.stop()
    other = await network("hub", is_new=True)
    await ada.publish("scout")

    async def is_shown() -> bool:
        peer = (await ada.call("get_peer", peer=pinned))["peer"]
        return peer["state"] == "unreachable" and "invalid_target" in (peer["last_error"] or "")

    await given.until(is_shown)
    assert other.rid != pinned
    assert other.registry() == {}
    assert (await ada.call("get_network"))["first_contact"]["rid"] == pinned


async def test_a_blocked_peer_gets_nothing_and_its_personalities_are_dropped(
    network: Network,
) -> None:
    hub, ada = await pair(network)
    await hub.call("block_peer", peer="ada")
    await hub.has()
    await hub.publish("guide")
    await ada.publish("scout")

    async def is_unreachable() -> bool:
        return (await ada.call("get_peer", peer="hub"))["peer"]["state"] == "unreachable"

    await given.until(is_unreachable)
    assert ada.registry() == {"helper/1": {}, "scout/1": {}}
    await hub.call("unblock_peer", peer="ada")
    await hub.has(guide={}, helper={}, scout={})
    await ada.has(guide={}, helper={}, scout={})


async def test_a_node_that_leaves_the_network_is_forgotten_and_may_rejoin(network: Network) -> None:
    hub, ada = await pair(network)
    await hub.publish("guide")
    await ada.has(guide={}, helper={})
    left = await ada.call("leave_network")
    assert (left["joined"], left["is_online"], left["edges"], left["peers"]) == (False, False, [], 0)
    await hub.has(guide={})
    assert (await hub.call("get_network"))["edges"] == []
    await ada.call("join_network", first_contact=hub.url)
    await hub.has(guide={}, helper={})
    await ada.has(guide={}, helper={})


async def test_joining_is_refused_with_a_reason(network: Network) -> None:
    hub, nobody = await network("hub"), "http://127.0.0.1:1/koi-net"
    for asked, code in (
        ({"first_contact": "hub"}, "BAD_FIRST_CONTACT"),
        ({"first_contact_rid": "orn:koi-net.node:x+y"}, "BAD_FIRST_CONTACT"),
        ({"first_contact": nobody, "first_contact_rid": "x"}, "BAD_FIRST_CONTACT"),
        ({"first_contact": nobody}, "KOI_JOINED"),
    ):
        assert (await given.refusal(hub.call("join_network", **asked))).code == code, asked
