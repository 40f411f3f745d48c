"""What other nodes send: what is right is taken in, and what is wrong is refused, counted, and harms nothing else."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from tests.services.personalities.nodes import FORGET, NEW, Here, Other, event, forget, protocol_error
from workbench.koi.payloads import Event
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import bundles
from workbench.services.personalities.peers import outbox, rows

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


async def test_a_node_introduces_itself_and_publishes_a_personality(here: Here, ada: Other) -> None:
    assert await here.receive(ada, *ada.handshake(), ada.personality("helper", mood="calm")) == (200, b"null")
    assert await here.registry() == {"helper/1"}
    found = here.ctx.node.directory.find("helper")
    assert found is not None
    assert not found.is_own
    assert found.profile.get_trait("mood").value == "calm"  # type: ignore[union-attr]
    assert await here.events() == [("peer.met", f"peer:{ada.rid}"), ("personality.published", "personality:helper/1")]
    assert await here.refusals() == {}


async def test_a_sender_that_is_not_known_is_refused_as_the_protocol_says(here: Here, ada: Other) -> None:
    status, body = await here.receive(ada, ada.personality("helper"))
    assert (status, protocol_error(body)) == (400, "unknown_node")
    assert await here.registry() == set()
    assert await here.refusals() == {"KOI_UNKNOWN_NODE": 1}


async def test_a_newer_version_of_the_contents_replaces_them_and_an_older_one_does_not(here: Here, ada: Other) -> None:
    first = ada.personality("helper", mood="calm")
    here.clock.forward(1)
    second = ada.personality("helper", mood="keen")
    await here.receive(ada, *ada.handshake(), first)
    await here.receive(ada, second)
    await here.receive(ada, first)
    assert here.ctx.node.directory.find("helper").profile.get_trait("mood").value == "keen"  # type: ignore[union-attr]
    assert await here.refusals() == {"KOI_OUTDATED": 1}
    assert [kind for kind, _ in await here.events()] == ["peer.met", "personality.published", "personality.updated"]


async def test_what_was_forgotten_comes_back_only_if_it_is_newer(here: Here, ada: Other) -> None:
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


async def test_what_was_published_again_as_it_had_been_is_not_removed_by_an_older_forget(
    here: Here, ada: Other
) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper", mood="calm"))
    here.clock.forward(1)
    manifest = bundles.manifest_of(AgentPersonality("helper", "1"), here.clock.now, outbox.NOTHING)
    missed = Event(rid=manifest.rid, event_type=FORGET, manifest=manifest)
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper", mood="calm"))
    await here.receive(ada, missed)
    assert await here.registry() == {"helper/1"}
    assert await here.refusals() == {"KOI_OUTDATED": 1}
    assert [kind for kind, _ in await here.events()] == ["peer.met", "personality.published"]


async def test_the_latest_version_is_that_with_the_newest_date_also_if_only_the_date_is_new(
    here: Here, ada: Other
) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper", "1"))
    for version in ("2", "1"):
        here.clock.forward(1)
        await here.receive(ada, ada.personality("helper", version))
    assert await here.registry() == {"helper/1", "helper/2"}
    assert here.ctx.node.directory.find("helper").profile.rid.version == "1"  # type: ignore[union-attr]


async def test_a_node_that_sends_something_is_not_waited_for_any_longer(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake())
    for expected in ([None], [here.clock.now + 8_000_000]):  # soon after, it is: it may send and not be reachable
        await here.ctx.write(lambda tx: rows.failed(tx, ada.rid, "it is down", tx.now + 8_000_000))
        await here.receive(ada, *ada.handshake())
        assert [row["retry_at"] for row in await here.rows("SELECT retry_at FROM koi_nodes")] == expected


async def test_versions_stand_side_by_side_and_the_newest_is_the_latest(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper", "1"))
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper", "2"))
    assert await here.registry() == {"helper/1", "helper/2"}
    assert here.ctx.node.directory.find("helper").profile.rid.version == "2"  # type: ignore[union-attr]
    await here.receive(ada, forget("helper", "2"))
    assert await here.registry() == {"helper/1"}


async def test_another_node_can_neither_change_nor_forget_what_it_does_not_own(
    here: Here, ada: Other, bob: Other
) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    await here.receive(bob, *bob.handshake())
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


async def test_this_nodes_own_is_changed_by_nobody_else(here: Here, ada: Other) -> None:
    await here.publish("own", mood="calm")
    await here.receive(ada, *ada.handshake())
    here.clock.forward(1)
    stolen = here.ctx.node.directory.find("own").profile.model_dump(mode="json") | {"traits": []}  # type: ignore[union-attr]
    await here.receive(ada, event(NEW, ada.bundle(AgentPersonality("own", "1"), stolen)), forget("own"))
    await here.receive(ada, Event(rid=here.rid, event_type=FORGET))
    assert await here.refusals() == {"KOI_OWN_RID": 3}
    assert await here.registry() == {"own/1"}


async def test_what_this_node_publishes_is_put_into_the_outbox_of_its_neighbours(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid))
    await here.publish("own")
    assert here.ctx.node.has_mail.is_set()
    assert await here.outbox() == {("ada", "orn:agent.personality:own/1", "NEW")}


async def test_a_request_that_is_cancelled_leaves_store_and_memory_alike(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake())
    go_on = threading.Event()
    ahead = asyncio.create_task(here.ctx.write(lambda tx: go_on.wait(20)))
    receiving = asyncio.create_task(here.receive(ada, ada.personality("helper")))
    while not any(task.get_coro().__qualname__ == "_committed" for task in asyncio.all_tasks()):  # type: ignore[union-attr]
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
