"""A decision about an edge applies to its state at the time of writing, not at the time of reading."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.services.personalities.nodes import FORGET, NEW, Here, Other, event
from workbench.koi.nodes import EdgeStatus, edge_rid
from workbench.koi.payloads import KoiEvent
from workbench.koi.rids import NODE, PERSONALITY
from workbench.services.personalities.exchange import edges
from workbench.store.base import Row

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

PROVIDES = {"event": [PERSONALITY], "state": [PERSONALITY]}
UNKNOWN_TYPE = "orn:something.else"


async def proposal(here: Here, ada: Other, *types: str) -> Row:
    """The edge from here to ada as she has proposed it, read from the store."""
    await here.receive(ada, *ada.handshake(), ada.edge(here.rid, ada.rid, EdgeStatus.PROPOSED, *types))
    [found] = await here.ctx.read(lambda tx: edges.proposals(tx, here.rid))
    here.clock.forward(1)
    return found


async def known_edges(here: Here) -> list[tuple[str, Any]]:
    rows = await here.rows("SELECT status, rid_types FROM koi_edges ORDER BY rid")
    return [(row["status"], json.loads(row["rid_types"])) for row in rows]


async def test_approving_an_edge_sends_the_known_personalities_before_the_approval(here: Here, ada: Other) -> None:
    await here.publish("helper")
    await edges.decide(here.ctx, here.rid, await proposal(here, ada))
    assert await known_edges(here) == [("APPROVED", [PERSONALITY])]
    queued = await here.rows("SELECT rid FROM koi_outbox ORDER BY id")
    assert [row["rid"] for row in queued] == [f"{PERSONALITY}:helper/1", str(edge_rid(here.rid, ada.rid))]


async def test_a_proposal_of_what_this_node_does_not_send_is_forgotten_on_both_sides(here: Here, ada: Other) -> None:
    await edges.decide(here.ctx, here.rid, await proposal(here, ada, UNKNOWN_TYPE))
    assert await known_edges(here) == []
    assert await here.outbox() == {("ada", str(edge_rid(here.rid, ada.rid)), "FORGET")}


@pytest.mark.parametrize("types", [(PERSONALITY,), (UNKNOWN_TYPE,)], ids=["possible", "impossible"])
async def test_a_proposal_that_was_changed_since_it_was_read_is_not_decided_about(
    here: Here, ada: Other, types: tuple[str, ...]
) -> None:
    old = await proposal(here, ada, *types)
    await here.receive(ada, ada.edge(here.rid, ada.rid, EdgeStatus.PROPOSED, NODE))
    await edges.decide(here.ctx, here.rid, old)
    assert await known_edges(here) == [("PROPOSED", [NODE])]
    assert await here.outbox() == set()
    await edges.settle(here.ctx, here.rid)
    assert await known_edges(here) == [("APPROVED", [NODE])]


@pytest.mark.parametrize("is_blocked", [False, True])
async def test_a_proposal_that_was_forgotten_since_it_was_read_does_not_come_back(
    here: Here, ada: Other, is_blocked: bool
) -> None:
    old = await proposal(here, ada)
    await here.publish("helper")
    if is_blocked:
        await here.workbench.call("block_peer", peer="ada")
    else:
        await here.receive(ada, KoiEvent(rid=edge_rid(here.rid, ada.rid), event_type=FORGET))
    before = await here.outbox()
    await edges.decide(here.ctx, here.rid, old)
    assert await known_edges(here) == []
    assert await here.outbox() == (set() if is_blocked else before)


async def test_no_edge_is_proposed_to_a_blocked_node(here: Here, ada: Other) -> None:
    await here.receive(ada, event(NEW, ada.node(provides=PROVIDES)))
    await here.workbench.call("block_peer", peer="ada")
    await edges.renew(here.ctx, here.rid, ada.rid)
    await edges.propose(here.ctx, here.rid, ada.rid, [PERSONALITY], lambda tx: False)
    assert await known_edges(here) == []
    assert await here.outbox() == set()
