"""Newcomers: a crowd of nodes that only introduce themselves keeps nobody out, and who is refused is told why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import count

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from rid_lib.ext.utils import sha256_hash
from rid_lib.types import KoiNetNode

from tests.conftest import Clock
from tests.services.personalities.conftest import NewSide
from tests.services.personalities.nodes import Here, Other, event
from workbench.koi.identity import NodeIdentity
from workbench.koi.nodes import EdgeStatus, EdgeType
from workbench.koi.payloads import EventType, FetchRids
from workbench.koi.requests import RIDS
from workbench.koi.rids import NODE, PERSONALITY
from workbench.model import SECOND
from workbench.services.personalities.exchange import rounds

pytestmark = pytest.mark.anyio


def strangers(clock: Clock) -> Iterator[Other]:
    """Nodes that nobody has heard of, each with a key of its own."""
    for number in count():
        key = ec.generate_private_key(ec.SECP256R1())
        nameless = NodeIdentity(key, KoiNetNode("nobody", "0"))
        rid = KoiNetNode(f"throw-away-{number}", sha256_hash(nameless.public_key))
        yield Other(NodeIdentity(key, rid), clock)


async def crowd(here: Here, clock: Clock, number: int) -> None:
    """Have nodes introduce themselves that are never heard of again."""
    for stranger, _ in zip(strangers(clock), range(number), strict=False):
        clock.forward(1)
        await here.meet(stranger)


async def known(here: Here) -> set[str]:
    return {row["name"] for row in await here.rows("SELECT name FROM koi_nodes")}


async def test_nodes_that_only_introduced_themselves_make_room_for_a_newcomer(
    here: Here, ada: Other, bob: Other, clock: Clock
) -> None:
    here.limit(max_koi_nodes=4)
    await here.receive(ada, *ada.handshake(), ada.personality("helper"))
    await here.receive(bob, *bob.handshake(), bob.edge(here.rid, bob.rid))
    await crowd(here, clock, 9)
    assert await known(here) == {"ada", "bob", "throw-away-7", "throw-away-8"}
    assert await here.refusals() == {}
    forgotten = [subject for kind, subject in await here.events() if kind == "peer.forgotten"]
    assert len(forgotten) == 7


async def test_of_nodes_that_made_room_nothing_is_noted_in_memory_either(here: Here, clock: Clock) -> None:
    here.limit(max_koi_nodes=2)
    presence = here.ctx.node.presence
    assert presence is not None
    await crowd(here, clock, 12)
    here.ctx.node.has_mail.set()
    await rounds.attend(here.ctx)
    assert len(presence.forgotten) == 2


async def test_a_node_that_asked_for_an_edge_makes_room_once_it_does_not_answer(
    here: Here, ada: Other, bob: Other, clock: Clock
) -> None:
    here.limit(max_koi_nodes=1)
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid, EdgeStatus.PROPOSED, PERSONALITY))
    await here.receive(bob, *bob.handshake())
    assert await here.refusals() == {"KOI_TOO_MANY": 1}
    await here.run("UPDATE koi_nodes SET failures = 1")
    clock.forward(1)
    await here.receive(bob, *bob.handshake())
    assert await known(here) == {"bob"}
    assert await here.rows("SELECT rid FROM koi_edges") == []


async def test_edges_of_others_leave_room_for_an_edge_with_this_node(here: Here, ada: Other, bob: Other) -> None:
    here.limit(max_koi_nodes=2)
    await here.meet(ada, bob)
    ends = [KoiNetNode(f"n{number}", f"{number}" * 64) for number in range(9)]
    await here.receive(ada, *(ada.edge(ada.rid, end, edge_type=EdgeType.POLL) for end in ends))
    assert await here.refusals() == {"KOI_TOO_MANY": 1}
    await here.receive(bob, bob.edge(here.rid, bob.rid))
    assert [row["status"] for row in await here.rows(f"SELECT status FROM koi_edges WHERE source = '{here.rid}'")]


async def test_a_node_that_is_not_let_in_is_told_why_and_so_is_the_operator(here: Here, ada: Other) -> None:
    early = ada.bundle(ada.rid, ada.node().contents, ada.clock.now + 600 * SECOND)  # its clock is ahead
    await here.receive(ada, event(EventType.NEW, early))
    status, body = await here.ask(ada, RIDS, FetchRids(rid_types=[NODE]))
    answer = json.loads(body)
    assert (status, answer["error"], answer["code"]) == (400, "unknown_node", "KOI_FROM_THE_FUTURE")
    assert "its manifest is dated" in answer["message"]
    listed = (await here.workbench.call("list_refused_peers", unknown=True))["refusals"]
    found = {row["code"]: row for row in listed}
    assert (found["KOI_FROM_THE_FUTURE"]["rid"], found["KOI_FROM_THE_FUTURE"]["count"]) == (str(ada.rid), 1)
    assert found["KOI_UNKNOWN_NODE"]["rid"] is None
    assert str(ada.rid) in found["KOI_UNKNOWN_NODE"]["last_reason"]


async def test_a_forged_message_counts_for_nobody_and_news_that_cross_for_nothing(
    here: Here, ada: Other, bob: Other
) -> None:
    await here.meet(ada, bob)
    old = ada.personality("helper", mood="old")
    here.clock.forward(1)
    await here.receive(ada, ada.personality("helper", mood="new"), old)
    forger = Other(NodeIdentity(bob.identity.key, ada.rid), here.clock)  # bob signs as ada
    await here.receive(forger, forger.personality("helper"))
    await here.receive(bob, ada.personality("helper", mood="new"))  # which is known
    details = await here.workbench.call("get_peer", peer="ada")
    assert details["peer"]["refused"] == 0
    assert [(one["code"], one["is_usual"]) for one in details["refusals"]] == [("KOI_OUTDATED", True)]
    assert (await here.workbench.call("get_peer", peer="bob"))["refusals"] == []
    assert (await here.workbench.call("get_network"))["refused"] == 1
    [forged] = (await here.workbench.call("list_refused_peers", unknown=True))["refusals"]
    assert forged["code"] == "KOI_INVALID_SIGNATURE"


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_after_five_thousand_throw_away_nodes_a_newcomer_is_in_at_once(new_side: NewSide, clock: Clock) -> None:
    async with new_side("hub") as hub:
        clock.now = hub.ctx.store.now()
        await crowd(Here(hub.workbench, hub.ctx, clock), clock, 5_000)
        async with asyncio.timeout(5), new_side("late", hub) as late:
            await late.publish("bee", mood={"value": "busy"})
            await hub.knows("bee", "mood")
