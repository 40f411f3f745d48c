"""Permission to change personalities: owners, relays, blocked nodes, replays, and limits."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from tests.services.personalities.nodes import FORGET, NEW, Here, Other, event, forget, protocol_error
from workbench.errors import Refused
from workbench.koi.envelope import signed
from workbench.koi.nodes import EdgeStatus
from workbench.koi.payloads import EventsPayload, KoiEvent, PollEvents
from workbench.koi.requests import BROADCAST, POLL
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import bundles
from workbench.services.personalities.exchange import receiving
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.pipeline import retention
from workbench.services.personalities.pipeline.run import handle

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


async def test_an_envelope_that_is_not_in_order_is_refused_as_the_protocol_says(
    here: Here, ada: Other, bob: Other
) -> None:
    async def error(answer: Awaitable[tuple[int, bytes]]) -> tuple[int, str]:
        status, body = await answer
        return status, protocol_error(body)

    assert await error(here.receive(ada, ada.personality("helper"))) == (400, "unknown_node")
    assert await here.refusals() == {"KOI_UNKNOWN_NODE": 1}
    introduced = event(NEW, ada.node(public_key=bob.identity.public_key))
    assert await error(here.receive(ada, introduced)) == (400, "invalid_key")
    assert await here.events() == []
    await here.meet(ada)
    payload = EventsPayload(events=[ada.personality("helper", mood="calm")])
    tampered = signed(ada.identity, payload, here.rid).replace(b"calm", b"keen")
    assert await error(receiving.answer(here.ctx, BROADCAST, tampered)) == (400, "invalid_signature")
    for_another = signed(ada.identity, payload, bob.rid)
    assert await error(receiving.answer(here.ctx, BROADCAST, for_another)) == (400, "invalid_target")
    assert await here.registry() == set()


async def test_a_relay_passes_on_what_others_own_and_a_plain_node_does_not(here: Here, ada: Other, bob: Other) -> None:
    await here.meet(bob)
    await here.receive(bob, ada.personality("helper"))
    assert await here.registry() == set()
    await here.make_relay(bob)
    await here.receive(bob, ada.personality("helper"), event(NEW, ada.node()))
    owned = await here.rows("SELECT owner, origin FROM koi_bundles WHERE rid LIKE '%helper%'")
    assert owned == [{"owner": str(ada.rid), "origin": str(bob.rid)}]
    await here.receive(bob, KoiEvent(rid=ada.rid, event_type=FORGET))
    assert ("peer.forgotten", f"peer:{ada.rid}") in await here.events()
    assert await here.registry() == {"helper/1"}  # which its owner has not forgotten
    await here.receive(bob, forget("helper"))
    assert await here.registry() == set()


async def test_a_relay_changes_neither_names_of_others_nor_this_nodes_own(here: Here, ada: Other, bob: Other) -> None:
    await here.publish("own")
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    await here.meet(bob)
    await here.make_relay(bob)
    here.clock.forward(1)
    await here.receive(bob, bob.personality("helper"), bob.personality("own"), forget("own"))
    assert await here.refusals() == {"KOI_NAME_TAKEN": 2, "KOI_OWN_RID": 1}
    assert await here.registry() == {"own/1", "helper/1"}


async def test_a_blocked_node_is_refused_also_by_way_of_a_relay(here: Here, ada: Other, bob: Other) -> None:
    await here.meet(ada, bob)
    await here.make_relay(bob)
    await here.workbench.call("block_peer", peer=str(ada.rid))
    for events in ([ada.personality("helper")], ada.handshake()):
        with pytest.raises(Refused, match="KOI_BLOCKED"):
            await here.receive(ada, *events)
    await here.receive(bob, ada.personality("helper"))
    assert await here.registry() == set()
    assert await here.refusals() == {"KOI_BLOCKED": 3}


async def test_an_edge_is_changed_by_its_two_ends_only(here: Here, ada: Other, bob: Other) -> None:
    await here.meet(ada, bob)
    await here.receive(bob, bob.edge(here.rid, ada.rid), bob.edge(ada.rid, bob.rid), ada.edge(ada.rid, ada.rid))
    assert await here.refusals() == {"KOI_OWN_RID": 1, "KOI_CONTENTS_INVALID": 1}
    await here.receive(ada, ada.edge(here.rid, ada.rid))
    here.clock.forward(1)
    await here.receive(ada, ada.edge(here.rid, ada.rid, EdgeStatus.APPROVED))
    rows = await here.rows("SELECT status FROM koi_edges WHERE target = :node", node=str(ada.rid))
    assert rows == [{"status": "APPROVED"}]
    await here.make_relay(bob)
    here.clock.forward(1)
    await here.receive(bob, bob.edge(here.rid, ada.rid))
    assert (await here.refusals())["KOI_OWN_RID"] == 2


async def test_a_node_that_leaves_takes_its_personalities_and_edges_with_it(here: Here, ada: Other, bob: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper"), ada.edge(here.rid, ada.rid))
    await here.receive(bob, *bob.handshake(), bob.personality("guide"))
    await here.receive(ada, KoiEvent(rid=ada.rid, event_type=FORGET))
    assert await here.registry() == {"guide/1"}
    assert await here.rows("SELECT * FROM koi_edges") == []
    status, body = await here.receive(ada, ada.personality("helper"))
    assert (status, protocol_error(body)) == (400, "unknown_node")
    await here.meet(ada)
    assert await here.refusals() == {"KOI_UNKNOWN_NODE": 1}


async def test_a_handshake_of_a_known_node_changes_nothing(here: Here, ada: Other) -> None:
    hello = ada.handshake()
    await here.receive(ada, *hello, ada.personality("helper"), ada.edge(here.rid, ada.rid))
    before = await here.events()
    handled = await handle(here.ctx, hello, ada.rid)
    assert handled.introduced
    assert await here.events() == before
    assert await here.registry() == {"helper/1"}


@pytest.mark.parametrize("mood", ["calm", "keen"])
async def test_an_older_forget_does_not_remove_a_republished_personality(here: Here, ada: Other, mood: str) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper", mood="calm"))
    here.clock.forward(1)
    missed = forget_at(here, "1")
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper", mood=mood))
    await here.receive(ada, missed)
    assert await here.registry() == {"helper/1"}
    assert await here.refusals() == {"KOI_OUTDATED": 1}
    kinds = [kind for kind, _ in await here.events()]
    assert kinds == ["peer.met", "personality.published"] + (["personality.updated"] if mood == "keen" else [])


async def test_a_forget_that_arrives_first_keeps_its_personality_out(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper", "1"))
    late = ada.personality("helper", "2")
    here.clock.forward(1)
    await here.receive(ada, forget_at(here, "2"))
    await here.receive(ada, late)
    assert await here.registry() == {"helper/1"}
    assert await here.refusals() == {"KOI_FORGOTTEN": 1}


def forget_at(here: Here, version: str) -> KoiEvent:
    """A version of the helper is forgotten, as this project dates that."""
    manifest = bundles.manifest_of(AgentPersonality("helper", version), here.clock.now, outbox.NOTHING)
    return KoiEvent(rid=manifest.rid, event_type=FORGET, manifest=manifest)


async def test_a_handshake_that_somebody_recorded_does_not_bring_back_a_node_that_left(here: Here, ada: Other) -> None:
    handshake = signed(ada.identity, EventsPayload(events=ada.handshake()), here.rid)
    assert (await receiving.answer(here.ctx, BROADCAST, handshake))[0] == 200
    assert (await receiving.answer(here.ctx, BROADCAST, handshake))[0] == 200  # some nodes sign the same alike
    await here.receive(ada, KoiEvent(rid=ada.rid, event_type=FORGET))
    with pytest.raises(Refused, match="KOI_REPLAYED"):
        await receiving.answer(here.ctx, BROADCAST, handshake)
    assert await here.rows("SELECT rid FROM koi_nodes") == []
    await here.meet(ada)
    assert [row["name"] for row in await here.rows("SELECT name FROM koi_nodes")] == ["ada"]


@pytest.mark.parametrize(
    "address",
    ["http://h:1/a?x=", "http://h:1/a#", "http://u:p@h:1/koi-net", "http://h:1/\r\nx", "file:///x", "http://"],
)
async def test_an_address_with_more_than_host_port_and_path_is_refused(here: Here, ada: Other, address: str) -> None:
    await here.receive(ada, event(NEW, ada.node(base_url=address)))
    assert await here.refusals() == {"KOI_CONTENTS_INVALID": 1}
    assert await here.rows("SELECT rid FROM koi_nodes") == []


async def test_an_update_of_a_plain_trait_changes_no_tools(here: Here, ada: Other) -> None:
    async def changed() -> list[bool]:
        found = await here.rows("SELECT data FROM events WHERE kind = 'personality.updated' ORDER BY id")
        return [json.loads(row["data"])["tools_changed"] for row in found]

    def helper(mood: str, description: str) -> KoiEvent:
        contents = ada.profile("helper", mood=mood)
        contents["traits"].append({"name": "add", "type": "tool", "is_callable": True, "description": description})
        here.clock.forward(1)
        return event(NEW, ada.bundle(AgentPersonality("helper", "1"), contents))

    await here.receive(ada, *ada.handshake(), helper("calm", "Adds."))
    await here.receive(ada, helper("keen", "Adds."))
    await here.receive(ada, helper("keen", "Adds two numbers."))
    assert await changed() == [False, True]


async def test_a_node_whose_key_is_lost_is_told_that_it_is_another_one_now(here: Here, ada: Other) -> None:
    columns = "name, version, traits, created_at, changed_at"
    await here.run(f"INSERT INTO own_personalities ({columns}) VALUES ('a', '1', '[]', 1, 1)")
    await here.run(f"INSERT INTO personality_owners (name, owner, since) VALUES ('a', '{ada.rid}', 1)")
    assert (await here.workbench.call("get_network"))["notice"] is None  # the name is another node's
    await here.receive(ada, *ada.handshake())
    await here.run("DELETE FROM koi_nodes")  # the bundle of a node that was never met: this one's, under its former key
    notice = (await here.workbench.call("get_network"))["notice"]
    assert notice.startswith("The key of ada·")


async def test_a_replayed_forget_erases_nothing_and_a_replayed_poll_gets_nothing(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid), ada.personality("helper"))
    forgetting = signed(ada.identity, EventsPayload(events=[forget("helper")]), here.rid)
    polling = signed(ada.identity, PollEvents(), here.rid)
    for path, raw in ((BROADCAST, forgetting), (POLL, polling)):
        assert (await receiving.answer(here.ctx, path, raw))[0] == 200
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper"))
    await here.publish("own")
    for path, raw in ((BROADCAST, forgetting), (POLL, polling)):
        with pytest.raises(Refused, match="KOI_REPLAYED"):
            await receiving.answer(here.ctx, path, raw)
    assert await here.registry() == {"helper/1", "own/1"}
    assert len(await here.outbox()) == 1


@pytest.mark.parametrize("limit", ["max_koi_personalities", "max_koi_personalities_per_node"])
async def test_personalities_are_limited_in_number(here: Here, ada: Other, limit: str) -> None:
    here.limit(**{limit: 2})
    await here.receive(ada, *ada.handshake(), *(ada.personality(f"helper{number}") for number in range(3)))
    assert await here.registry() == {"helper0/1", "helper1/1"}
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper1", mood="keen"))
    assert await here.refusals() == {"KOI_TOO_MANY": 1}
    await here.publish("own")
    assert await here.registry() == {"helper0/1", "helper1/1", "own/1"}


async def test_a_name_that_a_node_owns_counts_once(here: Here, ada: Other) -> None:
    here.limit(max_koi_personalities_per_node=2)
    await here.receive(ada, *ada.handshake(), ada.personality("one"), ada.personality("two"), forget("two"))
    here.clock.forward(1)
    await here.receive(ada, ada.personality("three"))
    assert await here.refusals() == {"KOI_TOO_MANY": 1}
    await here.receive(ada, ada.personality("two"))
    assert await here.registry() == {"one/1", "two/1"}


async def test_nodes_are_limited_in_number(here: Here, ada: Other, bob: Other) -> None:
    here.limit(max_koi_nodes=1)
    await here.receive(ada, *ada.handshake(), ada.personality("clerk"))
    await here.receive(bob, *bob.handshake(), bob.personality("helper"))
    assert await here.registry() == {"clerk/1"}
    assert [subject for kind, subject in await here.events() if kind == "peer.met"] == [f"peer:{ada.rid}"]


async def test_the_history_of_a_name_is_bounded(here: Here, ada: Other) -> None:
    here.limit(koi_history=3)
    await here.meet(ada)
    for mood in range(5):
        here.clock.forward(1)
        await here.receive(ada, ada.personality("helper", mood=mood))
    await here.receive(ada, forget("helper"))
    kept = await here.rows("SELECT event_type, contents FROM personality_history ORDER BY id")
    assert [row["event_type"] for row in kept] == ["UPDATE", "UPDATE", "FORGET"]


async def test_a_forgotten_edge_can_be_proposed_again_by_a_slow_clock(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid))
    here.clock.forward(1)
    again = ada.edge(here.rid, ada.rid)
    here.clock.forward(1)
    await here.forget(again.rid)
    await here.receive(ada, again)
    assert await here.refusals() == {}
    assert len(await here.rows("SELECT rid FROM koi_edges")) == 1


async def test_the_stored_bytes_of_a_node_are_limited(here: Here, ada: Other, bob: Other) -> None:
    here.limit(max_koi_bytes_per_node=5_000)
    await here.receive(ada, *ada.handshake(), ada.personality("large", about="x" * 3_000))
    await here.receive(ada, ada.personality("other", about="y" * 2_000))
    assert await here.registry() == {"large/1"}
    assert await here.refusals() == {"KOI_QUOTA_EXCEEDED": 1}
    here.clock.forward(1)
    await here.receive(ada, ada.personality("large", about="z" * 100))
    await here.receive(ada, ada.personality("other", about="é" * 2_400), ada.personality("small"))
    assert await here.registry() == {"large/1", "small/1"}
    assert await here.refusals() == {"KOI_QUOTA_EXCEEDED": 2}
    await here.receive(bob, *bob.handshake(), bob.personality("of-bob", about="x" * 3_000))
    await here.publish("own", about="x" * 10_000)
    assert await here.registry() == {"large/1", "small/1", "of-bob/1", "own/1"}


async def test_edges_that_a_node_sends_about_others_count_against_its_limit(
    here: Here, ada: Other, bob: Other, other: Callable[[str], Other]
) -> None:
    here.limit(max_koi_bytes_per_node=5_000)
    await here.meet(ada)
    types = [f"orn:made.up.{number:03}" for number in range(100)]
    for number in range(4):
        await here.receive(ada, ada.edge(other(f"nobody-{number}").rid, ada.rid, EdgeStatus.PROPOSED, *types))
    assert len(await here.rows("SELECT rid FROM koi_edges")) == 2
    assert await here.refusals() == {"KOI_QUOTA_EXCEEDED": 2}
    await here.receive(ada, ada.edge(here.rid, ada.rid, EdgeStatus.PROPOSED, *types))
    assert await here.refusals() == {"KOI_QUOTA_EXCEEDED": 3}
    await here.receive(bob, *bob.handshake(), bob.edge(here.rid, bob.rid, EdgeStatus.PROPOSED, *types))
    assert len(await here.rows("SELECT rid FROM koi_edges")) == 3


async def test_the_history_of_a_node_is_pruned_to_its_byte_limit(here: Here, ada: Other, bob: Other) -> None:
    here.limit(max_koi_bytes_per_node=5_000)
    await here.receive(bob, *bob.handshake(), bob.personality("of-bob", about="x" * 3_000))
    await here.meet(ada)
    for number in range(4):
        here.clock.forward(1)
        await here.receive(ada, ada.personality(f"helper{number % 2}", about=str(number) * 2_000))
    await retention.prune(here.ctx)
    kept = await here.rows("SELECT name, bytes FROM personality_history ORDER BY id")
    assert [row["name"] for row in kept] == ["of-bob", "helper0", "helper1"]
    assert sum(row["bytes"] for row in kept[1:]) <= 5_000
