"""Events of other nodes: valid ones are stored, others are refused and counted, and harm nothing else."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from tests import given
from tests.services.personalities.nodes import FORGET, NEW, Here, Other, event, forget
from workbench.app import Workbench
from workbench.koi.payloads import KoiEvent
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.peers import rows

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


async def test_a_node_introduces_itself_and_publishes_a_personality(here: Here, ada: Other) -> None:
    assert await here.receive(ada, *ada.handshake(), ada.personality("helper", mood="calm")) == (200, b"null")
    assert await here.registry() == {"helper/1"}
    assert here.trait("helper", "mood") == "calm"
    assert await here.events() == [("peer.met", f"peer:{ada.rid}"), ("personality.published", "personality:helper/1")]
    assert await here.refusals() == {}


async def test_a_process_that_does_not_serve_knows_the_personalities_and_follows_them(here: Here, ada: Other) -> None:
    await here.publish("own")
    await here.receive(ada, *ada.handshake(), ada.personality("helper", "1"), ada.personality("helper", "2", mood=""))
    async with Workbench.open(here.ctx.settings, clock=here.clock) as beside:
        there = Here(beside, beside._ctx, here.clock)
        assert await there.registry() == {"own/1", "helper/1", "helper/2"}
        directory = beside._ctx.node.directory
        latest = [(one.profile.rid.reference, one.is_own) for one in directory.latest()]
        assert latest == [("helper/2", False), ("own/1", True)]
        here.clock.forward(1)
        await here.receive(ada, ada.personality("helper", "2", mood="keen"), forget("helper", "1"))
        await given.until(lambda: len(list(directory.versions("helper"))) == 1)
        assert there.trait("helper", "mood") == "keen"
        assert await there.registry() == {"own/1", "helper/2"}


async def test_a_newer_version_of_the_contents_replaces_them_and_an_older_one_does_not(here: Here, ada: Other) -> None:
    first = ada.personality("helper", mood="calm")
    here.clock.forward(1)
    second = ada.personality("helper", mood="keen")
    await here.receive(ada, *ada.handshake(), first)
    await here.receive(ada, second)
    await here.receive(ada, first)
    assert here.trait("helper", "mood") == "keen"
    assert await here.refusals() == {"KOI_OUTDATED": 1}
    assert [kind for kind, _ in await here.events()] == ["peer.met", "personality.published", "personality.updated"]


async def test_a_forgotten_personality_returns_only_with_a_newer_manifest(here: Here, ada: Other) -> None:
    first = ada.personality("helper", mood="calm")
    await here.receive(ada, *ada.handshake(), first)
    await here.receive(ada, forget("helper"))
    assert await here.registry() == set()
    await here.receive(ada, first)
    assert await here.registry() == set()
    assert await here.refusals() == {"KOI_FORGOTTEN": 1}
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper", mood="calm"))
    assert await here.registry() == {"helper/1"}


async def test_versions_stand_side_by_side_and_the_latest_has_the_newest_date(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper", "1"))
    for version in ("2", "1"):
        here.clock.forward(1)
        await here.receive(ada, ada.personality("helper", version))
        assert await here.registry() == {"helper/1", "helper/2"}
        assert here.ctx.node.directory.find("helper").profile.rid.version == version  # type: ignore[union-attr]
    await here.receive(ada, forget("helper", "1"))
    assert await here.registry() == {"helper/2"}


async def test_a_node_that_sends_something_is_not_waited_for_any_longer(here: Here, ada: Other) -> None:
    await here.meet(ada)
    for expected in ([None], [here.clock.now + 8_000_000]):  # soon after, it is: it may send and not be reachable
        await here.ctx.write(lambda tx: rows.failed(tx, ada.rid, "it is down", tx.now + 8_000_000))
        await here.meet(ada)
        assert [row["retry_at"] for row in await here.rows("SELECT retry_at FROM koi_nodes")] == expected


async def test_a_node_can_neither_change_nor_forget_a_foreign_personality(here: Here, ada: Other, bob: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    await here.meet(bob)
    here.clock.forward(1)
    await here.receive(bob, bob.personality("helper"))
    await here.receive(bob, ada.personality("helper", mood="changed"))
    await here.receive(bob, forget("helper"))
    assert await here.refusals() == {"KOI_NAME_TAKEN": 1, "KOI_NOT_THE_OWNER": 2}
    await here.receive(ada, forget("helper"))
    here.clock.forward(1)
    await here.receive(bob, bob.personality("helper"))
    assert await here.registry() == set()
    assert (await here.refusals())["KOI_NAME_TAKEN"] == 2


async def test_nobody_else_changes_this_nodes_own_personalities(here: Here, ada: Other) -> None:
    await here.publish("own", mood="calm")
    await here.meet(ada)
    here.clock.forward(1)
    stolen = here.ctx.node.directory.find("own").profile.model_dump(mode="json") | {"traits": []}  # type: ignore[union-attr]
    await here.receive(ada, event(NEW, ada.bundle(AgentPersonality("own", "1"), stolen)), forget("own"))
    await here.receive(ada, KoiEvent(rid=here.rid, event_type=FORGET))
    assert await here.refusals() == {"KOI_OWN_RID": 3}
    assert await here.registry() == {"own/1"}


async def test_a_request_that_is_cancelled_leaves_store_and_memory_alike(here: Here, ada: Other) -> None:
    await here.meet(ada)
    go_on = threading.Event()
    ahead = asyncio.create_task(here.ctx.write(lambda tx: go_on.wait(20)))
    receiving = asyncio.create_task(here.receive(ada, ada.personality("helper")))
    while not any(task.get_coro().__qualname__ == "_commit" for task in asyncio.all_tasks()):  # type: ignore[union-attr]
        await asyncio.sleep(0)
    receiving.cancel()
    with suppress(asyncio.CancelledError):
        await receiving
    go_on.set()
    await ahead
    while await here.rows("SELECT rid FROM koi_bundles WHERE rid LIKE '%helper%'") == []:
        await asyncio.sleep(0)
    await here.ctx.write(lambda tx: None)
    assert await here.registry() == {"helper/1"}
