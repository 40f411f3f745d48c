"""A node whose state is older than what its peers know, and two nodes with one key: all agree again, or it is said."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests import given
from tests.services.personalities.exchange.conftest import Network, Station
from workbench.services.personalities import bundles
from workbench.trust import state_directory

COPIES = pytest.mark.sqlite("a copy of a project has a copy of the store's file")

pytestmark = [pytest.mark.anyio, pytest.mark.long, pytest.mark.timeout(60)]

SIX = {"six": {"is_callable": True, "value": 6}}


async def told(network: Network, **more: Any) -> tuple[Station, Station]:
    """aa, which has published ada and gone, and bb, which has joined it and knows them."""
    aa = await network("aa", **more)
    await aa.publish("ada", mood="one", **SIX)
    await aa.publish("gone")
    bb = await network("bb", aa, **more)
    await bb.has(ada={"mood": "one", "six": 6}, gone={})
    return aa, bb


def copied(station: Station, name: str) -> Path:
    """A copy of a project, as on another computer: nothing there says that its node is another project's."""
    project = station.project.with_name(name)
    shutil.copytree(station.project, project)
    state_directory.adopt(project)
    (project / ".aiswarm" / state_directory.NODE_OF_ANOTHER).unlink(missing_ok=True)
    return project


async def address(station: Station, rid: str) -> str:
    """Where a node is, as another one knows."""
    found: str = (await station.call("get_peer", peer=rid))["peer"]["base_url"]
    return found


async def problem(station: Station) -> str:
    return str((await station.call("get_network"))["problem"])


async def says_that_its_key_is_used(station: Station, url: str) -> None:
    """Return once a node says that another one, at an address, uses its key."""

    async def is_said() -> bool:
        return f"Another node uses the key of this one, at {url}" in await problem(station)

    await given.until(is_said)


@COPIES
async def test_a_restored_node_publishes_again_what_peers_know_in_a_newer_form(network: Network) -> None:
    aa, bb = await told(network)
    port, rid = aa.port, aa.rid
    await aa.stop()
    backup = copied(aa, "backup")
    aa = await network("aa", moves=True)
    await aa.publish("ada", mood="two", **SIX)
    await aa.withdraw("gone")
    await aa.publish("later")
    await bb.has(ada={"mood": "two", "six": 6}, later={})
    await aa.stop()

    shutil.rmtree(aa.project)
    backup.rename(aa.project)
    state_directory.adopt(aa.project)
    (aa.project / ".aiswarm" / state_directory.NODE_OF_ANOTHER).unlink(missing_ok=True)
    aa = await network("aa", port=port)
    await bb.has(ada={"mood": "one", "six": 6}, gone={})
    await given.until(lambda: _is_at(bb, rid, aa.url))
    await aa.call("set_peer_permission", peer=bb.rid, permission="always")
    assert (await bb.call("call_tool", name="ada__six", arguments={}))["result"] == 6
    await aa.publish("ada", mood="three")
    await bb.has(ada={"mood": "three"}, gone={})
    assert (await aa.call("get_network"))["problem"] is None


@COPIES
async def test_a_copy_takes_no_part_while_its_original_answers_and_both_say_so(network: Network) -> None:
    aa, bb = await told(network)
    copied(aa, "cc")
    cc = await network("cc")
    assert not (await cc.call("get_network"))["is_online"]
    await says_that_its_key_is_used(cc, aa.url)
    await says_that_its_key_is_used(aa, f"http://127.0.0.1:{cc.port}/koi-net")
    assert await address(bb, aa.rid) == aa.url


@COPIES
@pytest.mark.parametrize("end", ["stops", "leaves"])
async def test_an_original_and_its_copy_that_meet_at_a_peer_say_so_until_one_of_them_ends(
    network: Network, end: str
) -> None:
    aa, bb = await told(network, koi_reconcile_seconds=0.5)
    rid, port = aa.rid, aa.port
    await aa.stop()
    copied(aa, "cc")
    cc = await network("cc", koi_reconcile_seconds=0.5)
    assert cc.rid == rid
    await cc.publish("ada", mood="two")
    await bb.has(ada={"mood": "two"}, gone={})

    aa = await network("aa", port=port, koi_reconcile_seconds=0.5)
    await says_that_its_key_is_used(aa, cc.url)
    await says_that_its_key_is_used(cc, aa.url)
    await aa.publish("fresh")
    await given.until(lambda: _was_told_of(bb, "fresh"))
    await given.until(lambda: "fresh/1" not in bb.registry())  # it has compared itself with cc, which does not know it
    assert bb.registry()["ada/1"] == {"mood": "two"}

    await (cc.stop() if end == "stops" else cc.call("leave_network"))
    await bb.has(ada={"mood": "one", "six": 6}, gone={}, fresh={})
    await given.until(lambda: _is_at(bb, rid, aa.url))
    assert await problem(aa) == "None"


async def test_a_node_in_which_nothing_has_changed_does_not_date_its_bundle_anew(network: Network) -> None:
    aa = await network("aa")
    before = await _own_manifest(aa)
    await aa.stop()
    aa = await network("aa")
    assert await _own_manifest(aa) == before


async def _was_told_of(station: Station, name: str) -> bool:
    events = (await station.call("list_events", kinds=["personality.published"]))["events"]
    return f"personality:{name}/1" in [event["subject"] for event in events]


async def _is_at(station: Station, rid: str, url: str) -> bool:
    return await address(station, rid) == url


async def _own_manifest(station: Station) -> str:
    own = await station.workbench.store.read(lambda tx: bundles.find(tx, station.rid))
    assert own is not None
    return own.manifest
