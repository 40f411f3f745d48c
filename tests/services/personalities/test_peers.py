"""Peers: listing them, blocking and unblocking them, and what waits for them."""

from __future__ import annotations

from typing import Any

import pytest
from rid_lib.types import KoiNetNode

from tests import given
from workbench.app import Workbench
from workbench.koi import rids
from workbench.koi.nodes import NodeProfile, NodeType
from workbench.koi.payloads import EventType
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import bundles
from workbench.services.personalities.bundles import Stored
from workbench.services.personalities.peers import outbox, rows
from workbench.store.base import Reader, Tx

pytestmark = pytest.mark.anyio

ADA, BOB = (KoiNetNode(name, letter * 64) for name, letter in (("ada", "a"), ("bob", "b")))
RID = AgentPersonality("helper", "1")


def profile(**more: Any) -> NodeProfile:
    described = {"node_type": NodeType.FULL, "base_url": "http://127.0.0.1:1/koi-net", "public_key": "key"}
    return NodeProfile.model_validate(described | more)


async def note_nodes(workbench: Workbench, *nodes: KoiNetNode, **more: Any) -> None:

    def note(tx: Tx) -> None:
        for node in nodes:
            rows.note(tx, node, profile(**more))
            rid, contents = str(node), profile(**more).model_dump_json()
            bundles.put(tx, Stored(rid, rids.NODE, "{}", tx.now, "0", contents, rid, rid))

    await workbench.store.write(note)


async def peer_now(workbench: Workbench, ref: str = "ada") -> dict[str, Any]:
    return dict((await workbench.call("get_peer", peer=ref))["peer"])


async def test_a_peer_with_a_new_address_keeps_its_record(
    workbench: Workbench,
) -> None:
    await note_nodes(workbench, BOB, ADA)
    peers = (await workbench.call("list_peers"))["peers"]
    listed = [(peer["name"], peer["state"], peer["waiting"]) for peer in peers]
    assert listed == [("ada", "reachable", 0), ("bob", "reachable", 0)]
    await note_nodes(workbench, ADA, base_url="http://127.0.0.1:2/koi-net")
    ada = await peer_now(workbench)
    assert (ada["base_url"], ada["first_seen"]) == ("http://127.0.0.1:2/koi-net", peers[0]["first_seen"])


async def test_a_node_that_does_not_answer_says_why_and_when_it_is_tried_again(workbench: Workbench) -> None:
    await note_nodes(workbench, ADA)
    await workbench.store.write(lambda tx: rows.failed(tx, ADA, "it is down", tx.now + 1))
    peer = await peer_now(workbench, str(ADA))
    assert (peer["state"], peer["failures"], peer["last_error"]) == ("unreachable", 1, "it is down")
    await workbench.store.write(lambda tx: rows.reached(tx, ADA))
    peer = await peer_now(workbench)
    assert (peer["state"], peer["failures"], peer["last_error"], peer["retry_at"]) == ("reachable", 0, None, None)


async def test_a_blocked_node_has_no_queued_events_and_cannot_be_reached(workbench: Workbench) -> None:
    await note_nodes(workbench, ADA)
    await workbench.store.write(lambda tx: outbox.put(tx, str(ADA), RID, EventType.FORGET))
    blocked = (await workbench.call("block_peer", peer="ada"))["peer"]
    assert (blocked["state"], blocked["blocked_by"], blocked["waiting"]) == ("blocked", "operator", 0)
    row = await workbench.store.read(lambda tx: rows.find(tx, ADA))
    assert row is not None
    assert rows.address(row) is None
    unblocked = (await workbench.call("unblock_peer", peer="ada"))["peer"]
    assert (unblocked["state"], unblocked["blocked_by"]) == ("reachable", None)


async def test_a_blocked_node_stays_blocked_when_it_leaves(workbench: Workbench) -> None:
    await note_nodes(workbench, ADA, BOB)
    await workbench.call("block_peer", peer="ada")
    await workbench.store.write(lambda tx: [bundles.forget(tx, found, tx.now) for found in _bundles(tx)])
    states = {peer["name"]: peer["state"] for peer in (await workbench.call("list_peers"))["peers"]}
    assert states == {"ada": "blocked", "bob": "left"}


async def test_an_event_that_is_added_while_its_predecessor_is_sent_is_not_removed_with_it(
    workbench: Workbench,
) -> None:
    async def add() -> list[int]:
        await workbench.store.write(lambda tx: outbox.put(tx, str(ADA), RID, EventType.FORGET))
        return [one.id for one in await workbench.store.read(lambda tx: outbox.first(tx, str(ADA), 10))]

    await note_nodes(workbench, ADA)
    sent, [added] = await add(), await add()
    await workbench.store.write(lambda tx: outbox.remove(tx, sent))
    assert [one.id for one in await workbench.store.read(lambda tx: outbox.first(tx, str(ADA), 10))] == [added]


async def test_an_unknown_peer_and_an_ambiguous_name_are_refused(workbench: Workbench) -> None:
    await note_nodes(workbench, ADA, KoiNetNode("ada", "c" * 64))
    for ref, code in (("eve", "PEER_NOT_FOUND"), ("ada", "PEER_AMBIGUOUS")):
        assert (await given.refusal(peer_now(workbench, ref))).code == code


def _bundles(tx: Reader) -> list[Stored]:
    return [found for node in (ADA, BOB) if (found := bundles.find(tx, node))]
