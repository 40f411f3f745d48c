"""Compares the personalities that a peer has with those that are known here, so that whatever was missed heals.

What it has and this node lacks is fetched. What it owns and has no more is forgotten. What belongs to this node is sent
to it if it lacks it, or has what was withdrawn. The edge from it is proposed again if it has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rid_lib.types import KoiNetNode

from workbench.koi import rids
from workbench.koi.nodes import edge_rid
from workbench.koi.payloads import EventType, FetchManifests, KoiEvent, Manifest, ManifestsPayload
from workbench.koi.requests import MANIFESTS, KoiPeer
from workbench.ops import Ctx
from workbench.services.personalities import bundles
from workbench.services.personalities.exchange import edges, handshake
from workbench.services.personalities.peers import outbox, rejections, rows
from workbench.services.personalities.pipeline import run
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True, slots=True)
class KnownState:
    """What this node knows: personalities, and those that were forgotten, by RID."""

    bundles: Mapping[str, Row]
    forgotten: Mapping[str, Row]


async def compare(ctx: Ctx, peer: KoiPeer) -> None:
    """Compare what a peer has with what is known here, and heal the differences.

    Raises: as `PeerClient.exchange`.
    """
    me, node = str(handshake.present(ctx).identity.rid), str(peer.rid)
    # Read before the peer is asked: what it publishes meanwhile is not taken for forgotten.
    before = await ctx.read(_known)
    answer = await handshake.ask(ctx, peer, MANIFESTS, FetchManifests(rid_types=[rids.PERSONALITY]))
    if not isinstance(answer, ManifestsPayload):
        return
    theirs = {str(one.rid): one for one in answer.manifests if str(one.rid).startswith(f"{rids.PERSONALITY}:")}
    now = await ctx.read(_known)
    await _take(ctx, peer.rid, [*_lost(before, theirs, node), *_missed(now, theirs, me)])
    await ctx.write(lambda tx: _send(tx, theirs, me=me, node=node))
    for owner in await ctx.read(lambda tx: _absent_owners(tx, before, theirs, node)):
        await _ask_owner(ctx, owner, before)
    await _compare_edge(ctx, peer)
    ctx.node.has_mail.set()


def _known(tx: Reader) -> KnownState:
    return KnownState(
        {row["rid"]: row for row in tx.all(SQL.known)}, {row["rid"]: row for row in tx.all(SQL.forgotten)}
    )


def _lost(known: KnownState, theirs: Mapping[str, Manifest], node: str) -> Iterator[KoiEvent]:
    """What a node owns, as known here, and has no more: it is forgotten, unless there is something newer by then."""
    for rid, row in known.bundles.items():
        if row["owner"] == node and rid not in theirs:
            manifest = bundles.manifest_of(rids.parse(rid), row["manifest_at"], outbox.NOTHING)
            yield KoiEvent(rid=rids.parse(rid), event_type=EventType.FORGET, manifest=manifest)


def _missed(known: KnownState, theirs: Mapping[str, Manifest], me: str) -> Iterator[KoiEvent]:
    """What a node has and is not known here, or older. Its contents are fetched."""
    for rid, manifest in theirs.items():
        row, forgotten = known.bundles.get(rid), known.forgotten.get(rid)
        if forgotten is not None and (forgotten["owner"] == me or manifest.at <= forgotten["manifest_at"]):
            continue
        if row is None or (
            row["owner"] != me and row["sha256"] != manifest.sha256_hash and row["manifest_at"] < manifest.at
        ):
            yield KoiEvent(rid=manifest.rid, event_type=EventType.UPDATE, manifest=manifest)


async def _take(ctx: Ctx, source: KoiNetNode, events: list[KoiEvent]) -> None:
    size = ctx.settings.max_koi_batch_events
    for start in range(0, len(events), size):
        await run.handle(ctx, events[start : start + size], source)


def _send(tx: Tx, theirs: Mapping[str, Manifest], *, me: str, node: str) -> None:
    """Queue what of this node's own a peer lacks or has in another form, and what was withdrawn and it still has; and
    what the peer has failed with before.

    What this node owns is read in this transaction: it may have published again what it had withdrawn when the peer
    was asked. What the peer has by now does not matter, for it ignores what it knows, and what is older.
    """
    known = _known(tx)
    rejections.retry(tx, node)
    subscribes, rejected = tx.one(SQL.subscribes, me=me, node=node), rejections.hashes(tx, node)
    for rid, row in known.bundles.items():
        other = theirs.get(rid)
        if row["owner"] != me or rejected.get(rid) == row["sha256"]:
            continue
        if other.sha256_hash != row["sha256"] if other else subscribes and subscribes["n"]:
            outbox.put(tx, node, rids.parse(rid), EventType.UPDATE if other else EventType.NEW)
    for rid in theirs.keys() & known.forgotten.keys() - known.bundles.keys():
        if known.forgotten[rid]["owner"] == me and rejected.get(rid) != rejections.FORGOTTEN:
            outbox.put(tx, node, rids.parse(rid), EventType.FORGET)


def _absent_owners(tx: Reader, known: KnownState, theirs: Mapping[str, Manifest], node: str) -> list[KoiPeer]:
    """The owners of what came from a relay that has it no more: it may have missed or lost it, so they are asked."""
    owners = {row["owner"] for rid, row in known.bundles.items() if row["origin"] == node and rid not in theirs}
    found = (rows.find(tx, owner) for owner in sorted(owners - {node}))
    return [peer for row in found if row is not None and (peer := rows.address(row)) is not None]


async def _compare_edge(ctx: Ctx, peer: KoiPeer) -> None:
    """Propose the edge from a peer again if it has none: it has lost it, or forgotten it when it was told to forget us.

    A peer that does not want to send anything refuses it again, which costs little, as peers are seldom compared.
    """
    me = handshake.present(ctx).identity.rid
    rid = edge_rid(peer.rid, me)
    if await ctx.read(lambda tx: outbox.has(tx, str(peer.rid), rid)):
        return
    before = await ctx.read(lambda tx: bundles.find(tx, rid))
    answer = await handshake.ask(ctx, peer, MANIFESTS, FetchManifests(rids=[rid]))
    if not isinstance(answer, ManifestsPayload) or answer.manifests:
        return
    # Unless the peer has just decided about it:
    await edges.renew(ctx, me, peer.rid, lambda tx: bundles.find(tx, rid) == before)


async def _ask_owner(ctx: Ctx, owner: KoiPeer, known: KnownState) -> None:
    answer = await handshake.ask(ctx, owner, MANIFESTS, FetchManifests(rid_types=[rids.PERSONALITY]))
    if isinstance(answer, ManifestsPayload):
        theirs = {str(one.rid): one for one in answer.manifests}
        await _take(ctx, owner.rid, list(_lost(known, theirs, str(owner.rid))))
