"""Peers are independent of one another, and those that are not wanted get nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from tests import given
from tests.services.personalities.exchange.conftest import Network, Station
from workbench.errors import WorkbenchError

pytestmark = [pytest.mark.anyio, pytest.mark.long]


@pytest.fixture
async def silence() -> AsyncIterator[str]:
    """The URL of something that takes requests, and answers none."""
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/koi-net"
        for writer in writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


async def state(station: Station, peer: str) -> str:
    """How a peer is doing, as a node sees it."""
    return str((await station.call("get_peer", peer=peer))["peer"]["state"])


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


async def _knows(hub: Station, name: str) -> bool:
    return name in [peer["name"] for peer in (await hub.call("list_peers"))["peers"]]


async def _waits(hub: Station, names: tuple[str, ...]) -> bool:
    known = {peer["name"]: peer for peer in (await hub.call("list_peers"))["peers"]}
    return all(name in known and known[name]["waiting"] for name in names)


async def test_another_node_at_the_address_of_the_first_contact_is_refused_and_shown(network: Network) -> None:
    hub = await network("hub")
    contact, pinned = hub.url, hub.rid
    ada = await network("ada", contact)
    await ada.publish("helper")
    await hub.has(helper={})
    await hub.stop()
    (hub.project / ".aiswarm" / "koi" / "key.pem").unlink()
    (hub.project / ".aiswarm" / "coordination.db").unlink()
    other = await network("hub")
    await ada.publish("scout")

    async def is_shown() -> bool:
        peer = (await ada.call("get_peer", peer=pinned))["peer"]
        return peer["state"] == "unreachable" and "invalid_target" in (peer["last_error"] or "")

    await given.until(is_shown)
    assert other.rid != pinned
    assert other.registry() == {}
    assert (await ada.call("get_network"))["first_contact"]["rid"] == pinned


async def test_a_blocked_peer_gets_nothing_and_what_it_published_is_dropped_until_it_is_unblocked(
    network: Network,
) -> None:
    hub = await network("hub")
    ada = await network("ada", hub)
    await ada.publish("helper")
    await hub.has(helper={})
    await hub.call("block_peer", peer="ada")
    await hub.has()
    await hub.publish("guide")
    await ada.publish("scout")
    await given.until(lambda: _is_unreachable(ada))
    assert ada.registry() == {"helper/1": {}, "scout/1": {}}
    await hub.call("unblock_peer", peer="ada")
    await hub.has(guide={}, helper={}, scout={})
    await ada.has(guide={}, helper={}, scout={})


async def _is_unreachable(station: Station) -> bool:
    return await state(station, "hub") == "unreachable"


async def test_who_leaves_is_forgotten_and_may_come_back(network: Network) -> None:
    hub = await network("hub")
    ada = await network("ada", hub)
    await ada.publish("helper")
    await hub.publish("guide")
    await hub.has(guide={}, helper={})
    await ada.has(guide={}, helper={})
    left = await ada.call("leave_network")
    assert (left["joined"], left["is_online"], left["edges"], left["peers"]) == (False, False, [], 0)
    await hub.has(guide={})
    assert (await hub.call("get_network"))["edges"] == []
    await ada.call("join_network", first_contact=hub.url)
    await hub.has(guide={}, helper={})
    await ada.has(guide={}, helper={})


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"first_contact": "hub"}, "BAD_FIRST_CONTACT"),
        ({"first_contact_rid": "orn:koi-net.node:x+y"}, "BAD_FIRST_CONTACT"),
        ({"first_contact": "http://127.0.0.1:1/koi-net", "first_contact_rid": "x"}, "BAD_FIRST_CONTACT"),
        ({"first_contact": "http://127.0.0.1:1/koi-net"}, "KOI_JOINED"),
    ],
)
async def test_joining_is_refused_with_a_reason(network: Network, asked: dict[str, Any], code: str) -> None:
    hub = await network("hub")
    with pytest.raises(WorkbenchError) as refused:
        await hub.call("join_network", **asked)
    assert refused.value.code == code
