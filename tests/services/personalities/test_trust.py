"""Who may change what: owners, relays, blocked nodes, replays, and limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.services.personalities.nodes import FORGET, NEW, Here, Other, event, forget, protocol_error
from workbench.errors import Refused
from workbench.koi.envelope import signed
from workbench.koi.nodes import EdgeStatus
from workbench.koi.payloads import Event, EventsPayload, Manifest, PollEvents
from workbench.koi.requests import BROADCAST, POLL
from workbench.model import SECOND
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import bundles, receiving
from workbench.services.personalities.pipeline import directory, retention
from workbench.services.personalities.pipeline.run import handle

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]


async def test_a_tampered_envelope_is_refused(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake())
    raw = signed(ada.identity, EventsPayload(events=[ada.personality("helper", mood="calm")]), here.rid)
    status, body = await receiving.answer(here.ctx, BROADCAST, raw.replace(b"calm", b"keen"))
    assert (status, protocol_error(body)) == (400, "invalid_signature")
    assert await here.registry() == set()


async def test_an_envelope_for_another_node_is_refused(here: Here, ada: Other, bob: Other) -> None:
    await here.receive(ada, *ada.handshake())
    raw = signed(ada.identity, EventsPayload(events=[ada.personality("helper")]), bob.rid)
    status, body = await receiving.answer(here.ctx, BROADCAST, raw)
    assert (status, protocol_error(body)) == (400, "invalid_target")


async def test_a_node_that_introduces_itself_with_another_key_is_refused(here: Here, ada: Other, bob: Other) -> None:
    introduced = event(NEW, ada.node(public_key=bob.identity.public_key))
    status, body = await here.receive(ada, introduced)
    assert (status, protocol_error(body)) == (400, "invalid_key")
    assert await here.events() == []


async def test_contents_that_do_not_have_the_hash_of_their_manifest_are_refused(here: Here, ada: Other) -> None:
    wrong = ada.personality("helper", mood="calm")
    assert wrong.contents is not None
    wrong.contents["traits"] = []
    await here.receive(ada, *ada.handshake(), wrong, ada.personality("other"))
    assert await here.registry() == {"other/1"}
    assert await here.refusals() == {"KOI_HASH_MISMATCH": 1}


async def test_manifest_and_contents_are_of_the_rid_of_the_event(here: Here, ada: Other) -> None:
    made = ada.personality("helper")
    other_rid = AgentPersonality("elsewhere", "1")
    foreign_manifest = Event(rid=other_rid, event_type=NEW, manifest=made.manifest, contents=made.contents)
    foreign_contents = event(NEW, ada.bundle(other_rid, ada.profile("helper")))
    await here.receive(ada, *ada.handshake(), foreign_manifest, foreign_contents)
    assert await here.registry() == set()
    assert await here.refusals() == {"KOI_WRONG_RID": 2}


async def test_what_is_dated_in_the_future_is_refused_beyond_the_skew_of_clocks(here: Here, ada: Other) -> None:
    soon, later = here.clock.now + 299 * SECOND, here.clock.now + 301 * SECOND
    await here.receive(ada, *ada.handshake(), ada.personality("soon", at=soon), ada.personality("later", at=later))
    assert await here.registry() == {"soon/1"}
    assert await here.refusals() == {"KOI_FROM_THE_FUTURE": 1}


async def test_a_relay_passes_on_what_others_own_and_a_plain_node_does_not(here: Here, ada: Other, bob: Other) -> None:
    await here.receive(bob, *bob.handshake())
    await here.receive(bob, ada.personality("helper"))
    assert await here.registry() == set()
    await here.make_relay(bob)
    await here.receive(bob, ada.personality("helper"), event(NEW, ada.node()))
    assert await here.registry() == {"helper/1"}
    owned = await here.rows("SELECT owner, origin FROM koi_bundles WHERE rid LIKE '%helper%'")
    assert owned == [{"owner": str(ada.rid), "origin": str(bob.rid)}]
    await here.receive(bob, forget("helper"))
    assert await here.registry() == set()


async def test_a_relay_changes_neither_names_of_others_nor_this_nodes_own(here: Here, ada: Other, bob: Other) -> None:
    await here.publish("own")
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    await here.receive(bob, *bob.handshake())
    await here.make_relay(bob)
    here.clock.forward(1)
    await here.receive(bob, bob.personality("helper"), bob.personality("own"), forget("own"))
    assert await here.refusals() == {"KOI_NAME_TAKEN": 2, "KOI_OWN_RID": 1}
    assert await here.registry() == {"own/1", "helper/1"}


async def test_a_blocked_node_is_refused_also_by_way_of_a_relay(here: Here, ada: Other, bob: Other) -> None:
    await here.receive(ada, *ada.handshake())
    await here.receive(bob, *bob.handshake())
    await here.make_relay(bob)
    await here.workbench.call("block_peer", peer=str(ada.rid))
    for events in ([ada.personality("helper")], ada.handshake()):
        with pytest.raises(Refused, match="KOI_BLOCKED"):
            await here.receive(ada, *events)
    await here.receive(bob, ada.personality("helper"))
    assert await here.registry() == set()
    assert await here.refusals() == {"KOI_BLOCKED": 3}


async def test_an_edge_is_changed_by_its_two_ends_only(here: Here, ada: Other, bob: Other) -> None:
    for one in (ada, bob):
        await here.receive(one, *one.handshake())
    await here.receive(bob, bob.edge(here.rid, ada.rid), bob.edge(ada.rid, bob.rid), ada.edge(ada.rid, ada.rid))
    assert await here.refusals() == {"KOI_OWN_RID": 1, "KOI_CONTENTS_INVALID": 1}
    await here.receive(ada, ada.edge(here.rid, ada.rid))
    here.clock.forward(1)
    await here.receive(ada, ada.edge(here.rid, ada.rid, EdgeStatus.APPROVED))
    assert await here.rows("SELECT status FROM koi_edges WHERE target = :node", node=str(ada.rid)) == [
        {"status": "APPROVED"}
    ]
    await here.make_relay(bob)
    here.clock.forward(1)
    await here.receive(bob, bob.edge(here.rid, ada.rid))
    assert (await here.refusals())["KOI_OWN_RID"] == 2


async def test_a_node_that_leaves_takes_its_personalities_and_edges_with_it(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper"), ada.edge(here.rid, ada.rid))
    await here.receive(ada, Event(rid=ada.rid, event_type=FORGET))
    assert await here.registry() == set()
    assert await here.rows("SELECT * FROM koi_edges") == []
    status, body = await here.receive(ada, ada.personality("helper"))
    assert (status, protocol_error(body)) == (400, "unknown_node")
    await here.receive(ada, *ada.handshake())
    assert await here.refusals() == {"KOI_UNKNOWN_NODE": 1}


async def test_a_node_that_a_relay_lost_keeps_its_personalities(here: Here, ada: Other, bob: Other) -> None:
    await here.receive(bob, *bob.handshake())
    await here.make_relay(bob)
    await here.receive(bob, event(NEW, ada.node()), ada.personality("helper"))
    await here.receive(bob, Event(rid=ada.rid, event_type=FORGET))
    assert await here.registry() == {"helper/1"}
    assert ("peer.forgotten", f"peer:{ada.rid}") in await here.events()


async def test_a_handshake_of_a_known_node_changes_nothing(here: Here, ada: Other) -> None:
    hello = ada.handshake()
    await here.receive(ada, *hello, ada.personality("helper"), ada.edge(here.rid, ada.rid))
    before = await here.events()
    handled = await handle(here.ctx, hello, ada.rid)
    assert handled.introduced
    assert await here.events() == before
    assert await here.registry() == {"helper/1"}


async def test_a_forget_that_arrives_after_something_newer_is_refused(here: Here, ada: Other) -> None:
    first = ada.personality("helper", mood="calm")
    await here.receive(ada, *ada.handshake(), first)
    here.clock.forward(1)
    late = Event(
        rid=first.rid,
        event_type=FORGET,
        manifest=Manifest.model_validate(bundles.manifest_of(first.rid, here.clock.now, "0" * 64).model_dump()),
    )
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper", mood="keen"))
    await here.receive(ada, late)
    assert await here.registry() == {"helper/1"}
    assert await here.refusals() == {"KOI_OUTDATED": 1}


async def test_a_forget_that_arrives_before_what_it_forgets_keeps_it_out(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper", "1"))
    late = ada.personality("helper", "2")
    here.clock.forward(1)
    rid = AgentPersonality("helper", "2")
    gone = Event(rid=rid, event_type=FORGET, manifest=bundles.manifest_of(rid, here.clock.now, "0" * 64))
    await here.receive(ada, gone)
    await here.receive(ada, late)
    assert await here.registry() == {"helper/1"}
    assert await here.refusals() == {"KOI_FORGOTTEN": 1}


async def test_a_replayed_forget_does_not_erase_what_came_back(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    raw = signed(ada.identity, EventsPayload(events=[forget("helper")]), here.rid)
    assert (await receiving.answer(here.ctx, BROADCAST, raw))[0] == 200
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper"))
    with pytest.raises(Refused, match="KOI_REPLAYED"):
        await receiving.answer(here.ctx, BROADCAST, raw)
    assert await here.registry() == {"helper/1"}


async def test_a_replayed_poll_gets_nothing(here: Here, ada: Other) -> None:
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid))
    raw = signed(ada.identity, PollEvents(), here.rid)
    assert (await receiving.answer(here.ctx, POLL, raw))[0] == 200
    await here.publish("own")
    with pytest.raises(Refused, match="KOI_REPLAYED"):
        await receiving.answer(here.ctx, POLL, raw)
    assert len(await here.outbox()) == 1


@pytest.mark.parametrize("limit", ["max_koi_personalities", "max_koi_personalities_per_node"])
async def test_there_is_a_limit_to_personalities(here: Here, ada: Other, limit: str) -> None:
    here.ctx = here.ctx._replace(settings=here.ctx.settings.model_copy(update={limit: 2}))
    await here.receive(ada, *ada.handshake(), *(ada.personality(f"helper{number}") for number in range(3)))
    assert await here.registry() == {"helper0/1", "helper1/1"}
    assert await here.refusals() == {"KOI_TOO_MANY": 1}
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper1", mood="keen"))
    assert await here.refusals() == {"KOI_TOO_MANY": 1}
    await here.publish("own")
    assert await here.registry() == {"helper0/1", "helper1/1", "own/1"}


async def test_a_name_that_a_node_owns_counts_once(here: Here, ada: Other) -> None:
    changed = here.ctx.settings.model_copy(update={"max_koi_personalities_per_node": 2})
    here.ctx = here.ctx._replace(settings=changed)
    await here.receive(ada, *ada.handshake(), ada.personality("one"), ada.personality("two"), forget("two"))
    here.clock.forward(1)
    await here.receive(ada, ada.personality("three"))
    assert await here.refusals() == {"KOI_TOO_MANY": 1}
    await here.receive(ada, ada.personality("two"))
    assert await here.registry() == {"one/1", "two/1"}


async def test_there_is_a_limit_to_nodes(here: Here, ada: Other, bob: Other) -> None:
    here.ctx = here.ctx._replace(settings=here.ctx.settings.model_copy(update={"max_koi_nodes": 1}))
    await here.receive(ada, *ada.handshake())
    await here.receive(bob, *bob.handshake(), bob.personality("helper"))
    assert await here.registry() == set()
    assert [subject for kind, subject in await here.events() if kind == "peer.met"] == [f"peer:{ada.rid}"]


async def test_the_directory_is_rebuilt_from_the_store(here: Here, ada: Other) -> None:
    await here.publish("own")
    await here.receive(ada, *ada.handshake(), ada.personality("helper", "1"), ada.personality("helper", "2"))
    before = list(here.ctx.node.directory.latest())
    here.ctx.node.directory.replace([])
    await directory.fill(here.ctx)
    assert list(here.ctx.node.directory.latest()) == before
    assert [known.is_own for known in before] == [False, True]


async def test_the_history_of_a_name_is_bounded(here: Here, ada: Other) -> None:
    here.ctx = here.ctx._replace(settings=here.ctx.settings.model_copy(update={"koi_history": 3}))
    await here.receive(ada, *ada.handshake())
    for mood in range(5):
        here.clock.forward(1)
        await here.receive(ada, ada.personality("helper", mood=mood))
    await here.receive(ada, forget("helper"))
    kept = await here.rows("SELECT event_type, contents FROM personality_history ORDER BY id")
    assert [row["event_type"] for row in kept] == ["UPDATE", "UPDATE", "FORGET"]


async def test_what_many_nodes_send_is_told_apart(here: Here, other: Callable[[str], Other]) -> None:
    nodes = [other(f"node{number}") for number in range(5)]
    for one in nodes:
        await here.receive(one, *one.handshake(), one.personality(f"of-{one.rid.name}"))
    await here.receive(nodes[0], Event(rid=nodes[0].rid, event_type=FORGET))
    assert await here.registry() == {f"of-node{number}/1" for number in range(1, 5)}


async def test_an_edge_that_was_forgotten_here_can_be_proposed_again_by_a_clock_that_is_behind(
    here: Here, ada: Other
) -> None:
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid))
    here.clock.forward(1)
    again = ada.edge(here.rid, ada.rid)
    here.clock.forward(1)
    await handle(here.ctx, [Event(rid=again.rid, event_type=FORGET)], None)
    await here.receive(ada, again)
    assert await here.refusals() == {}
    assert len(await here.rows("SELECT rid FROM koi_edges")) == 1


async def test_there_is_a_limit_to_what_is_kept_of_a_node(here: Here, ada: Other, bob: Other) -> None:
    here.ctx = here.ctx._replace(settings=here.ctx.settings.model_copy(update={"max_koi_bytes_per_node": 5_000}))
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


async def test_what_a_node_sends_about_edges_from_others_counts_as_its_own(
    here: Here, ada: Other, bob: Other, other: Callable[[str], Other]
) -> None:
    here.ctx = here.ctx._replace(settings=here.ctx.settings.model_copy(update={"max_koi_bytes_per_node": 5_000}))
    await here.receive(ada, *ada.handshake())
    types = [f"orn:made.up.{number:03}" for number in range(100)]
    for number in range(4):
        await here.receive(ada, ada.edge(other(f"nobody-{number}").rid, ada.rid, EdgeStatus.PROPOSED, *types))
    assert len(await here.rows("SELECT rid FROM koi_edges")) == 2
    assert await here.refusals() == {"KOI_QUOTA_EXCEEDED": 2}
    await here.receive(ada, ada.edge(here.rid, ada.rid, EdgeStatus.PROPOSED, *types))
    assert await here.refusals() == {"KOI_QUOTA_EXCEEDED": 3}
    await here.receive(bob, *bob.handshake(), bob.edge(here.rid, bob.rid, EdgeStatus.PROPOSED, *types))
    assert len(await here.rows("SELECT rid FROM koi_edges")) == 3


async def test_the_history_of_a_node_is_as_large_as_what_is_kept_of_it(here: Here, ada: Other, bob: Other) -> None:
    here.ctx = here.ctx._replace(settings=here.ctx.settings.model_copy(update={"max_koi_bytes_per_node": 5_000}))
    await here.receive(bob, *bob.handshake(), bob.personality("of-bob", about="x" * 3_000))
    await here.receive(ada, *ada.handshake())
    for number in range(4):
        here.clock.forward(1)
        await here.receive(ada, ada.personality(f"helper{number % 2}", about=str(number) * 2_000))
    await retention.prune(here.ctx)
    kept = await here.rows("SELECT name, bytes FROM personality_history ORDER BY id")
    assert [row["name"] for row in kept] == ["of-bob", "helper0", "helper1"]
    assert sum(row["bytes"] for row in kept[1:]) <= 5_000
