"""Recipients of a change: all neighbours for this node's own, subscribers for anyone else's."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.services.personalities.nodes import NEW, Here, Other, forget
from workbench.koi.identity import NodeIdentity
from workbench.koi.node import Presence
from workbench.koi.nodes import EdgeStatus, EdgeType, edge_rid
from workbench.koi.payloads import KoiEvent, PollEvents
from workbench.koi.requests import POLL
from workbench.koi.rids import NODE, PERSONALITY
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities.peers import rows
from workbench.services.personalities.pipeline.run import handle

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

OWN = AgentPersonality("own", "1")


@pytest.fixture
def cid(other: Callable[[str], Other]) -> Other:
    return other("cid")


async def subscribe(here: Here, node: Other, *types: str) -> None:
    """Make a node known that subscribes to types of RIDs."""
    await here.receive(node, *node.handshake(), node.edge(here.rid, node.rid, EdgeStatus.PROPOSED, *types))


async def sent(here: Here) -> set[tuple[str, str]]:
    """Empty the outbox; returns the recipient and the personality of each event."""
    found = {(node, rid.rpartition(":")[2]) for node, rid, _ in await here.outbox() if PERSONALITY in rid}
    await here.run("DELETE FROM koi_outbox")
    return found


async def test_a_nodes_personality_is_passed_on_to_subscribers_but_not_to_its_owner(
    here: Here, ada: Other, bob: Other, cid: Other
) -> None:
    await subscribe(here, ada, PERSONALITY)
    await subscribe(here, bob, PERSONALITY)
    await subscribe(here, cid, NODE)
    await here.receive(ada, ada.personality("helper"))
    assert await sent(here) == {("bob", "helper/1")}
    await here.receive(ada, forget("helper"))
    assert await sent(here) == {("bob", "helper/1")}


async def test_a_relayed_personality_returns_neither_to_the_relay_nor_to_the_owner(
    here: Here, ada: Other, bob: Other, cid: Other
) -> None:
    for one in (ada, bob, cid):
        await subscribe(here, one, PERSONALITY)
    await here.make_relay(bob)
    await here.receive(bob, ada.personality("helper"))
    assert await sent(here) == {("cid", "helper/1")}


async def test_own_personalities_go_to_all_neighbours_that_are_not_blocked(
    here: Here, ada: Other, bob: Other, cid: Other
) -> None:
    await subscribe(here, ada, NODE)
    await here.receive(bob, *bob.handshake(), bob.edge(bob.rid, here.rid))
    await here.meet(cid)
    await here.publish("own")
    assert here.ctx.node.has_mail.is_set()
    assert await here.outbox() >= {("ada", f"{PERSONALITY}:own/1", "NEW")}
    assert await sent(here) == {("ada", "own/1"), ("bob", "own/1")}
    await here.workbench.call("block_peer", peer=str(bob.rid))
    await here.forget(OWN)
    assert await sent(here) == {("ada", "own/1")}


async def test_a_change_of_an_own_edge_is_sent_to_its_other_end(here: Here, ada: Other, bob: Other) -> None:
    await subscribe(here, ada, PERSONALITY)
    await here.meet(bob)
    rid = edge_rid(here.rid, ada.rid)
    [row] = await here.rows("SELECT contents FROM koi_bundles WHERE rid = :rid", rid=str(rid))
    approved = json.loads(row["contents"]) | {"status": "APPROVED"}
    await handle(here.ctx, [KoiEvent(rid=rid, event_type=NEW, contents=approved)], None)
    assert [one for one in await here.outbox() if one[1] == str(rid)] == [("ada", str(rid), "UPDATE")]
    assert ("edge.approved", f"edge:{rid}") in await here.events()


async def test_a_node_that_leaves_tells_its_neighbours_what_leaves_with_it(here: Here, ada: Other) -> None:
    await subscribe(here, ada, PERSONALITY)
    await here.publish("own")
    await here.run("DELETE FROM koi_outbox")
    contents = ada.node().contents | {"public_key": here.identity.public_key, "base_url": None}
    await handle(here.ctx, [KoiEvent(rid=here.rid, event_type=NEW, contents=contents)], None)
    await here.forget(here.rid)
    assert {(rid, kind) for _, rid, kind in await here.outbox()} == {
        (f"{PERSONALITY}:own/1", "FORGET"),
        (str(edge_rid(here.rid, ada.rid)), "FORGET"),
        (str(here.rid), "FORGET"),
    }
    assert await here.registry() == set()


async def test_a_poll_gets_what_waits_and_a_forget_is_dated(here: Here, ada: Other) -> None:
    await subscribe(here, ada, PERSONALITY)
    await here.publish("own", "1")
    await here.publish("own", "2")
    here.clock.forward(1)
    await here.forget(OWN)
    new, gone = json.loads((await here.ask(ada, POLL, PollEvents()))[1])["payload"]["events"]
    assert (new["rid"], new["event_type"]) == (f"{PERSONALITY}:own/2", "NEW")
    assert (gone["rid"], gone["event_type"]) == (str(OWN), "FORGET")
    assert gone["manifest"]["timestamp"] > new["manifest"]["timestamp"]


async def test_events_for_a_polling_node_wait_until_it_polls(here: Here, ada: Other) -> None:
    async def is_to_be_sent() -> bool:
        [row] = await here.ctx.read(lambda tx: rows.due(tx, str(here.rid)))
        return bool(row["has_mail"])

    polling = ada.edge(here.rid, ada.rid, EdgeStatus.APPROVED, edge_type=EdgeType.POLL)
    await here.receive(ada, *ada.handshake(), polling)
    await here.publish("own")
    assert not await is_to_be_sent()
    here.clock.forward(1)
    await here.receive(ada, ada.edge(here.rid, ada.rid, EdgeStatus.APPROVED))
    assert await is_to_be_sent()


async def test_a_renamed_node_with_the_same_key_keeps_its_personalities(here: Here, ada: Other) -> None:
    await here.publish("own")
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    assert here.ctx.node.presence is not None
    presence = here.ctx.node.presence
    renamed = NodeIdentity(presence.identity.key, type(here.rid)("renamed", here.rid.hash))
    here.ctx.node.presence = Presence(renamed, presence.base_url, presence.client)
    here.clock.forward(1)
    assert (await here.publish("own", mood="keen")).refused == []
    lovelace = Other(NodeIdentity(ada.identity.key, type(ada.rid)("lovelace", ada.rid.hash)), here.clock)
    await here.receive(lovelace, *lovelace.handshake(), lovelace.personality("helper", mood="keen"))
    assert await here.refusals() == {}
    owned = await here.rows("SELECT owner FROM personalities ORDER BY rid")
    assert [row["owner"] for row in owned] == [str(lovelace.rid), str(renamed.rid)]
