"""Edges: who sends what to whom. The receiver proposes an edge, the sender approves it or has it forgotten.

What is to be done follows from the tables, so nothing is lost with the process that began it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from rid_lib.types import KoiNetNode

from workbench.koi import rids
from workbench.koi.nodes import EdgeProfile, EdgeStatus, EdgeType, NodeProfile, NodeType, edge_rid
from workbench.koi.payloads import Event, EventType
from workbench.ops import Ctx
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.pipeline import run
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)
PROVIDED = frozenset({rids.PERSONALITY, rids.NODE, rids.EDGE})
"""What others may subscribe to."""


async def settle(ctx: Ctx, me: KoiNetNode) -> None:
    """Propose the edges that this node wants, and decide about those that others propose."""
    wanted, proposed = await ctx.read(lambda tx: (list(_wanted(tx, me)), tx.all(SQL.proposed, me=str(me))))
    for source, types in wanted:
        await propose(ctx, me, source, types)
    for row in proposed:
        await (_approve(ctx, me, row) if _is_possible(row) else _refuse(ctx, row))


async def renew(ctx: Ctx, me: KoiNetNode, source: KoiNetNode) -> None:
    """Propose the edge from a node again, which may have forgotten it."""
    found = await ctx.read(lambda tx: tx.all(SQL.sources, me=str(me)))
    types = next((_types(row) for row in found if row["rid"] == str(source)), [])
    if types:
        await propose(ctx, me, source, types)


async def propose(ctx: Ctx, me: KoiNetNode, source: KoiNetNode, types: list[str]) -> None:
    """Ask a node to send its events of some types."""
    rid = edge_rid(source, me)
    contents = EdgeProfile(
        source=source, target=me, edge_type=EdgeType.WEBHOOK, status=EdgeStatus.PROPOSED, rid_types=types
    ).model_dump(mode="json")
    await run.handle(ctx, [Event(rid=rid, event_type=EventType.NEW, contents=contents)], None)
    # Also one that was proposed before: the node may not have received it.
    await ctx.write(lambda tx: outbox.put(tx, str(source), rid, EventType.NEW))
    ctx.node.has_mail.set()


def _wanted(tx: Reader, me: KoiNetNode) -> Iterator[tuple[KoiNetNode, list[str]]]:
    """The nodes to get events from, with the types, unless there is such an edge already."""
    for row in tx.all(SQL.sources, me=str(me)):
        source, types = rids.parse_node(row["rid"]), _types(row)
        is_there = row["rid_types"] is not None and set(json.loads(row["rid_types"])) == set(types)
        if types and not is_there and not _was_refused(tx, source, me, row["changed_at"]):
            yield source, types


def _types(row: Row) -> list[str]:
    """What a node sends of what is wanted of it: personalities, and of the first contact also nodes."""
    wanted = {rids.PERSONALITY, rids.NODE} if row["is_relay"] else {rids.PERSONALITY}
    return sorted(wanted & set(NodeProfile.model_validate_json(row["contents"]).provides.event))


def _was_refused(tx: Reader, source: KoiNetNode, me: KoiNetNode, changed_at: int) -> bool:
    """Whether the edge was forgotten after the node introduced itself. It is proposed again when both are compared."""
    row = tx.one(SQL.refused_at, rid=str(edge_rid(source, me)))
    return row is not None and row["forgotten_at"] > changed_at


def _is_possible(row: Row) -> bool:
    """Whether this node can send what an edge asks for, in the way it asks for."""
    is_reachable = row["edge_type"] == EdgeType.POLL or row["node_type"] == NodeType.FULL
    return is_reachable and set(json.loads(row["rid_types"])) <= PROVIDED


async def _approve(ctx: Ctx, me: KoiNetNode, row: Row) -> None:
    """Approve an edge from this node, and send what is known already."""
    known = set(json.loads(row["rid_types"])) - {rids.EDGE}
    await ctx.write(lambda tx: outbox.put_known(tx, row["target"], known, me=str(me), everything=True))
    contents = {**json.loads(row["contents"]), "status": EdgeStatus.APPROVED}
    await run.handle(ctx, [Event(rid=rids.parse(row["rid"]), event_type=EventType.UPDATE, contents=contents)], None)
    ctx.node.has_mail.set()


async def _refuse(ctx: Ctx, row: Row) -> None:
    rid = rids.parse(row["rid"])
    await run.handle(ctx, [Event(rid=rid, event_type=EventType.FORGET)], None)
    await ctx.write(lambda tx: outbox.put(tx, row["target"], rid, EventType.FORGET))
    ctx.node.has_mail.set()
