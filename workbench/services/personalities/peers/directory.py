"""Operations on peers: list them, and decide which of them are blocked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import BadInput, Hint, NotFound
from workbench.koi import rids
from workbench.koi.nodes import EdgeStatus, NodeType
from workbench.model import Level, Micros, Wire
from workbench.ops import Command, Ctx, op
from workbench.rules.personalities.addresses import node_label
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import refusals
from workbench.services.personalities.peers import outbox, rejections, rows
from workbench.services.personalities.refusals import USUAL
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

PeerRef = Annotated[str, Field(min_length=1, max_length=300, description="RID of the peer, or its name if unique.")]


class PeerInfo(Wire):
    """A node of the network.

    `state`: reachable: it answered at `last_seen`; unreachable since its last error, and tried again at `retry_at`;
    relayed: the first contact tells of it, and it was never asked; blocked; polling: it fetches what is for it; or
    left. `last_seen`: when it last answered, or sent something. `sends_to_us`, `gets_from_us`: the edges with it, if
    there are any. `personalities`: of its own, as known here. `waiting`: events that are still to be sent to it.
    `rejected`: those that it does not accept. `refused`: its messages and calls that were refused, without those that
    were only out of date.
    """

    rid: str
    name: str
    node_type: NodeType
    base_url: str | None
    is_relay: bool
    state: Literal["reachable", "unreachable", "relayed", "blocked", "polling", "left"]
    sends_to_us: EdgeStatus | None
    gets_from_us: EdgeStatus | None
    personalities: int
    waiting: int
    rejected: int
    refused: int
    first_seen: Micros
    last_seen: Micros
    failures: int
    retry_at: Micros | None
    last_error: str | None
    blocked_at: Micros | None
    blocked_by: str | None


class Peers(Wire):
    """Peers, by name."""

    peers: list[PeerInfo]


class RefusalCount(Wire):
    """How many messages and calls of a peer were refused for a reason. `is_usual`: news that cross, which happens among
    honest nodes and is not counted."""

    code: str
    count: int
    last_at: Micros
    last_reason: str
    is_usual: bool


class Refusal(RefusalCount):
    """What was refused of one sender for one reason. `rid`: who it is, or says it is; null: that is not known.
    `is_known`: it is a node that this one knows."""

    rid: str | None
    is_known: bool


class Refusals(Wire):
    """What was refused of other nodes and of unknown senders, the latest first."""

    refusals: list[Refusal]


class Rejection(Wire):
    """An event of this node that a peer does not accept. It is sent to it again if it changes.

    `is_final`: the peer will never accept it. Otherwise it has failed with it, and gets it again when both nodes are
    compared.
    """

    rid: str
    code: str
    reason: str
    is_final: bool
    rejected_at: Micros


class PeerPermission(Wire):
    """What a peer may call here. `trait`: ``agent__trait``, or * for all others."""

    trait: str
    permission: str
    calls_per_minute: int
    decided_by: str
    decided_at: Micros


class PeerDetails(Wire):
    """A peer, what was refused of it, what it rejects, and what it may call."""

    peer: PeerInfo
    refusals: list[RefusalCount]
    rejections: list[Rejection]
    permissions: list[PeerPermission]


@op(allow=Level.OPERATOR, reads=True, tool=False, command="koi peers", refreshed_by="peer edge personality clock")
async def list_peers(ctx: Ctx) -> Peers:
    """List the nodes of the network that this one knows: their edges, state and what waits for them."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list, me=_me(ctx), rid=None, usual=refusals.USUAL_CODES))
    return Peers(peers=[_peer(row) for row in rows])


@op(allow=Level.OPERATOR, reads=True, tool=False, refreshed_by="peer clock")
async def list_refused_peers(
    ctx: Ctx,
    unknown: Annotated[bool, Field(description="Only those of senders that are not known here.")] = False,
    limit: Annotated[int, Field(ge=1, le=1_000, description="Most rows.")] = 100,
) -> Refusals:
    """List what was refused of other nodes and of unknown senders, by sender and reason: code, number, last time."""
    found = await ctx.read(lambda tx: tx.all(SQL.all_refusals, unknown=int(unknown), limit=limit))
    return Refusals(refusals=[_refusal(row) for row in found])


@op(allow=Level.OPERATOR, reads=True, tool=False, command="koi peers")
async def get_peer(ctx: Ctx, peer: PeerRef) -> PeerDetails:
    """Show a node of the network: its state, what was refused of it, what it rejects, and what it may call."""
    return await ctx.read(lambda tx: _details(tx, resolve(tx, peer), _me(ctx)))


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command("koi block PEER", asks="What {peer} has published will be dropped."),
)
async def block_peer(ctx: Ctx, peer: PeerRef) -> PeerDetails:
    """Block a node: accept nothing from it, send nothing to it, and drop what it has published."""
    rid, dropped = await ctx.write(lambda tx: _block(tx, resolve(tx, peer)))
    for personality in dropped:
        ctx.node.directory.remove(personality.name, personality.version)
    return await get_peer(ctx, rid)


@op(allow=Level.OPERATOR, tool=False, command=Command("koi unblock PEER"))
async def unblock_peer(ctx: Ctx, peer: PeerRef) -> PeerDetails:
    """Unblock a node. What it has published is fetched again."""
    rid = await ctx.write(lambda tx: _unblock(tx, resolve(tx, peer)))
    ctx.node.has_mail.set()
    return await get_peer(ctx, rid)


def resolve(tx: Reader, ref: str) -> str:
    """The RID of a peer, given it, a name, or a name with the mark of its key; see `node_label`.

    Raises:
        NotFound: ``PEER_NOT_FOUND``. BadInput: ``PEER_AMBIGUOUS``: several have this name.
    """
    found = [row["rid"] for row in tx.all(SQL.named, ref=ref)]
    if not found:
        namesakes = [row["rid"] for row in tx.all(SQL.named, ref=ref.rpartition("·")[0])]
        found = [rid for rid in namesakes if node_label(rid) == ref]
    if not found:
        raise NotFound(
            "PEER_NOT_FOUND",
            f"No node of the network that is known here is {ref!r}.",
            Hint("list_peers", "See {}."),
        )
    if len(found) > 1 and ref not in found:
        labels = ", ".join(node_label(rid) for rid in found)
        raise BadInput("PEER_AMBIGUOUS", f"Several nodes are named {ref!r}. Give one of {labels}.", candidates=found)
    return ref if ref in found else str(found[0])


def _block(tx: Tx, rid: str) -> tuple[str, list[AgentPersonality]]:
    """Block a node. No tombstones are made, so that what it has published can come back."""
    if not tx.run(rows.SQL.block, rid=rid, now=tx.now, by=tx.actor):
        return rid, []
    outbox.empty(tx, rid)
    dropped = [
        parsed for row in tx.all(SQL.owned, rid=rid) if isinstance(parsed := rids.parse(row["rid"]), AgentPersonality)
    ]
    for drop in (SQL.drop_personalities, SQL.drop_bundles, SQL.drop_edge_bundles, SQL.drop_edges):
        tx.run(drop, rid=rid)
    tx.emit("peer.blocked", f"peer:{rid}", personalities=len(dropped))
    for personality in dropped:
        tx.emit("personality.forgotten", f"personality:{personality.reference}", reason="peer_blocked")
    return rid, dropped


def _unblock(tx: Tx, rid: str) -> str:
    if tx.run(rows.SQL.unblock, rid=rid):
        rejections.clear(tx, rid)
        tx.emit("peer.unblocked", f"peer:{rid}")
    return rid


def _me(ctx: Ctx) -> str | None:
    return str(ctx.node.presence.identity.rid) if ctx.node.presence else None


def _details(tx: Reader, rid: str, me: str | None) -> PeerDetails:
    [row] = tx.all(SQL.list, me=me, rid=rid, usual=refusals.USUAL_CODES)
    return PeerDetails(
        peer=_peer(row),
        refusals=[RefusalCount.model_validate({**row, **_usual(row)}) for row in tx.all(SQL.refusals, rid=rid)],
        rejections=[Rejection.model_validate(one) for one in tx.all(SQL.rejections, rid=rid)],
        permissions=[PeerPermission.model_validate(one) for one in tx.all(SQL.permissions, rid=rid)],
    )


def _refusal(row: Row) -> Refusal:
    return Refusal.model_validate({**row, **_usual(row), "is_known": bool(row["is_known"])})


def _usual(row: Row) -> dict[str, bool]:
    return {"is_usual": row["code"] in USUAL}


def _peer(row: Row) -> PeerInfo:
    described = {name: row[name] for name in PeerInfo.model_fields if name in row}
    return PeerInfo.model_validate({**described, "is_relay": bool(row["is_relay"]), "state": _state(row)})


def _state(row: Row) -> str:
    if row["blocked_at"] is not None:
        return "blocked"
    if not row["is_known"]:
        return "left"
    if row["node_type"] == NodeType.PARTIAL:
        return "polling"
    if row["failures"]:
        return "unreachable"
    is_neighbour = row["is_relay"] or row["sends_to_us"] or row["gets_from_us"]
    return "reachable" if is_neighbour or row["is_met"] else "relayed"
