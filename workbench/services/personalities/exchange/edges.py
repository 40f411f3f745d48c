"""Edges: who sends what to whom. The receiver proposes an edge, the sender approves it or has it forgotten.

What is to be done follows from the tables, so nothing is lost with the process that began it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

from rid_lib.types import KoiNetNode

from workbench.koi import rids
from workbench.koi.nodes import EdgeProfile, EdgeStatus, EdgeType, NodeProfile, NodeType, edge_rid
from workbench.koi.payloads import EventType, KoiEvent
from workbench.ops import Ctx
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.pipeline import run
from workbench.services.personalities.pipeline.item import Condition, always
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
PROVIDED = frozenset({rids.PERSONALITY, rids.NODE, rids.EDGE})
"""What others may subscribe to."""


async def settle(ctx: Ctx, me: KoiNetNode) -> None:
    """Propose the edges that this node wants, and decide about those that others propose."""
    sources, proposed = await ctx.read(lambda tx: (list(_sources(tx, me)), proposals(tx, me)))
    for source, types in sources:
        await propose(ctx, me, source, types, partial(_is_wanted, me, source, types))
    for proposal in proposed:
        await decide(ctx, me, proposal)


async def renew(ctx: Ctx, me: KoiNetNode, source: KoiNetNode, only_if: Condition = always) -> None:
    """Propose the edge from a node again, which may have forgotten it.

    Args:
        only_if: as for `run.handle`.
    """
    types = await ctx.read(lambda tx: _types_of(tx, me, source))
    if types:
        await propose(ctx, me, source, types, lambda tx: only_if(tx) and _types_of(tx, me, source) == types)


async def propose(ctx: Ctx, me: KoiNetNode, source: KoiNetNode, types: list[str], only_if: Condition = always) -> None:
    """Ask a node to send its events of some types.

    Args:
        only_if: as for `run.handle`.
    """
    rid = edge_rid(source, me)
    contents = EdgeProfile(
        source=source, target=me, edge_type=EdgeType.WEBHOOK, status=EdgeStatus.PROPOSED, rid_types=types
    ).model_dump(mode="json")

    def queue(tx: Tx) -> bool:
        """Queue it also if it was proposed before: the node may not have received it."""
        if is_so := only_if(tx):
            outbox.put(tx, str(source), rid, EventType.NEW)
        return is_so

    await run.handle(ctx, [KoiEvent(rid=rid, event_type=EventType.NEW, contents=contents)], None, queue)
    ctx.node.has_mail.set()


def proposals(tx: Reader, me: KoiNetNode) -> list[Row]:
    """The edges that others propose to get events from this node."""
    return tx.all(SQL.proposed, me=str(me))


async def decide(ctx: Ctx, me: KoiNetNode, proposal: Row) -> None:
    """Approve a proposal, and send what is known already; or have it forgotten, if this node cannot do that.

    Nothing is done if it is no longer proposed like that: its node has changed or forgotten it, or was blocked.
    """
    rid, is_possible = rids.parse(proposal["rid"]), _is_possible(proposal)

    def is_still_proposed(tx: Tx) -> bool:
        is_so = proposal in proposals(tx, me)
        if is_so and is_possible:
            types = set(json.loads(proposal["rid_types"])) - {rids.EDGE}
            outbox.put_known(tx, proposal["target"], types, me=str(me), everything=True)
        return is_so

    approved = {**json.loads(proposal["contents"]), "status": EdgeStatus.APPROVED}
    event_type, contents = (EventType.UPDATE, approved) if is_possible else (EventType.FORGET, None)
    await run.handle(ctx, [KoiEvent(rid=rid, event_type=event_type, contents=contents)], None, is_still_proposed)
    if ctx.node.presence is not None:
        ctx.node.presence.compared.pop(proposal["target"], None)  # it may have forgotten what it is sent


def _is_wanted(me: KoiNetNode, source: KoiNetNode, types: list[str], tx: Reader) -> bool:
    return (source, types) in _sources(tx, me)


def _types_of(tx: Reader, me: KoiNetNode, source: KoiNetNode) -> list[str]:
    """What is wanted of a node; nothing if it is not known, or is blocked."""
    return next((_types(row) for row in _direct(tx, me) if row["rid"] == str(source)), [])


def _sources(tx: Reader, me: KoiNetNode) -> Iterator[tuple[KoiNetNode, list[str]]]:
    """The nodes to get events from, with the types, unless there is such an edge already."""
    for row in _direct(tx, me):
        source, types = rids.parse_node(row["rid"]), _types(row)
        is_there = row["rid_types"] is not None and set(json.loads(row["rid_types"])) == set(types)
        if types and not is_there and not _was_refused(tx, source, me, row["changed_at"]):
            yield source, types


def _direct(tx: Reader, me: KoiNetNode) -> list[Row]:
    """The nodes whose personalities come from themselves: not those that the first contact knows, if it passes on
    personalities. A coordinator of koi-net passes on nodes only."""
    sources = tx.all(SQL.sources, me=str(me))
    if any(row["is_relay"] and rids.PERSONALITY in _types(row) for row in sources):
        return [row for row in sources if row["is_relay"] or row["origin"] == row["rid"]]
    return sources


def _types(row: Row) -> list[str]:
    """What a node sends of what is wanted of it: personalities, and of the first contact also nodes."""
    types = {rids.PERSONALITY, rids.NODE} if row["is_relay"] else {rids.PERSONALITY}
    return sorted(types & set(NodeProfile.model_validate_json(row["contents"]).provides.event))


def _was_refused(tx: Reader, source: KoiNetNode, me: KoiNetNode, changed_at: int) -> bool:
    """Whether the edge was forgotten after the node introduced itself. It is proposed again when both are compared."""
    row = tx.one(SQL.refused_at, rid=str(edge_rid(source, me)))
    return row is not None and row["forgotten_at"] > changed_at


def _is_possible(row: Row) -> bool:
    """Whether this node can send what an edge asks for, in the way it asks for."""
    is_reachable = row["edge_type"] == EdgeType.POLL or row["node_type"] == NodeType.FULL
    return is_reachable and set(json.loads(row["rid_types"])) <= PROVIDED
