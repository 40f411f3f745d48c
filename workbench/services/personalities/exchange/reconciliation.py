"""Compares the personalities that a peer has with those that are known here, so that whatever was missed heals.

What it has and this node lacks is fetched; from the first contact, nodes as well. What it owns and has no more is
forgotten. What belongs to this node is sent to it if it lacks it, or has what was withdrawn. The edge from it is
proposed again if it has none.

This node may have been restored from a backup: then a peer has newer versions of what belongs to this node. What is
here is dated anew and sent, unless another node uses the same key now, which is noted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from rid_lib import RID
from rid_lib.types import KoiNetNode

from workbench.koi import rids
from workbench.koi.node import Presence
from workbench.koi.nodes import edge_rid
from workbench.koi.payloads import (
    BundlesPayload,
    EventType,
    FetchBundles,
    FetchManifests,
    KoiEvent,
    Manifest,
    ManifestsPayload,
)
from workbench.koi.requests import BUNDLES, MANIFESTS, KoiPeer
from workbench.model import SECOND
from workbench.ops import Ctx
from workbench.rules.personalities.profile import PersonalityProfile
from workbench.rules.personalities.rid import AgentPersonality
from workbench.services.personalities import bundles
from workbench.services.personalities.bundles import Stored
from workbench.services.personalities.exchange import edges, handshake, same_key
from workbench.services.personalities.peers import outbox, rejections, rows
from workbench.services.personalities.pipeline import directory, final, run
from workbench.services.personalities.pipeline.item import ItemChange
from workbench.services.personalities.refusals import RefusalReason, RefusedEvent
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True, slots=True)
class KnownState:
    """What this node knows of a type, and what was forgotten, by RID."""

    bundles: Mapping[str, Row]
    forgotten: Mapping[str, Row]


async def compare(ctx: Ctx, peer: KoiPeer) -> None:
    """Compare what a peer has with what is known here, and heal the differences.

    Raises: as `PeerClient.exchange`.
    """
    presence = handshake.present(ctx)
    me, node = str(presence.identity.rid), str(peer.rid)
    await _compare_self(ctx, presence, peer)
    await _learn_nodes(ctx, peer, me)
    # Read before the peer is asked: what it publishes meanwhile is not taken for forgotten.
    before = await ctx.read(_read_state)
    answer = await handshake.ask(ctx, peer, MANIFESTS, FetchManifests(rid_types=[rids.PERSONALITY]))
    if not isinstance(answer, ManifestsPayload):
        return
    manifests = {
        str(manifest.rid): manifest
        for manifest in answer.manifests
        if str(manifest.rid).startswith(f"{rids.PERSONALITY}:")
    }
    now = await ctx.read(_read_state)
    refused = await _take(ctx, peer.rid, [*_lost(before, manifests, node), *_missed(now, manifests, me)])
    own = {one.rid for one in refused if one.code is RefusalReason.OWN_RID}
    credible = _credible(ctx, manifests)
    changes = await ctx.write(lambda tx: _Sender(tx, presence, node, credible).send(own))
    directory.apply(ctx.node.directory, presence.identity.rid, changes)
    for owner in await ctx.read(lambda tx: _absent_owners(tx, before, manifests, node)):
        await _ask_owner(ctx, owner, before)
    await _compare_edge(ctx, peer)
    ctx.node.has_mail.set()


def _read_state(tx: Reader, rid_type: str = rids.PERSONALITY) -> KnownState:
    return KnownState(
        {row["rid"]: row for row in tx.all(SQL.known, rid_type=rid_type)},
        {row["rid"]: row for row in tx.all(SQL.forgotten, rid_type=rid_type)},
    )


async def _learn_nodes(ctx: Ctx, peer: KoiPeer, me: str) -> None:
    """Fetch the nodes that the first contact knows: it announces only those that come while this one is there."""
    row = await ctx.read(lambda tx: rows.find(tx, peer.rid))
    if row is None or not row["is_relay"]:
        return
    answer = await handshake.ask(ctx, peer, MANIFESTS, FetchManifests(rid_types=[rids.NODE]))
    if isinstance(answer, ManifestsPayload):
        nodes = {str(node.rid): node for node in answer.manifests if isinstance(node.rid, KoiNetNode)}
        state = await ctx.read(lambda tx: _read_state(tx, rids.NODE))
        await _take(ctx, peer.rid, list(_missed(state, nodes, me)))


async def _compare_self(ctx: Ctx, presence: Presence, peer: KoiPeer) -> None:
    """Send this node's own bundle again to a peer that has another one, and take back the edges between both.

    Newer ones are from another life of this node, or from another node with its key.
    """
    me = presence.identity.rid
    if presence.same_key is not None:
        await same_key.probe(ctx, presence, presence.same_key)
    both = [edge_rid(me, peer.rid), edge_rid(peer.rid, me)]
    answer = await handshake.ask(ctx, peer, MANIFESTS, FetchManifests(rids=[me, *both]))
    manifests = answer.manifests if isinstance(answer, ManifestsPayload) else []
    edge_manifests = [edge for edge in manifests if edge.rid in both]
    newer = await ctx.read(lambda tx: [edge for edge in edge_manifests if _is_newer(tx, edge)])
    await _take(ctx, peer.rid, [KoiEvent(rid=edge.rid, event_type=EventType.UPDATE, manifest=edge) for edge in newer])
    manifest = next((node for node in manifests if node.rid == me), None)
    own = await ctx.read(lambda tx: bundles.find(tx, me))
    if manifest is None or own is None or manifest.sha256_hash == own.sha256:
        return
    if manifest.at >= own.manifest_at:
        bundle = await handshake.ask(ctx, peer, BUNDLES, FetchBundles(rids=[me]))
        published = bundle.bundles if isinstance(bundle, BundlesPayload) else []
        url = next((same_key.address(version.contents) for version in published if version.rid == me), None)
        if url is not None and url != presence.base_url:
            await same_key.probe(ctx, presence, url)
    credible = _credible(ctx, {str(me): manifest})
    await ctx.write(lambda tx: _Sender(tx, presence, str(peer.rid), credible).update(me))


def _credible(ctx: Ctx, manifests: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """Manifests that are not dated in the future: no peer would accept one that supersedes such a manifest."""
    latest = ctx.store.now() + round(ctx.settings.koi_skew_seconds * SECOND)
    return {rid: manifest for rid, manifest in manifests.items() if manifest.at <= latest}


def _lost(state: KnownState, manifests: Mapping[str, Manifest], node: str) -> Iterator[KoiEvent]:
    """What a node owns, as known here, and has no more: it is forgotten, unless there is something newer by then."""
    for rid, row in state.bundles.items():
        if row["owner"] == node and rid not in manifests:
            manifest = bundles.manifest_of(rids.parse(rid), row["manifest_at"], outbox.NOTHING)
            yield KoiEvent(rid=rids.parse(rid), event_type=EventType.FORGET, manifest=manifest)


def _missed(state: KnownState, manifests: Mapping[str, Manifest], me: str) -> Iterator[KoiEvent]:
    """What a node has and is not known here, or older. Its contents are fetched."""
    for rid, manifest in manifests.items():
        row, forgotten = state.bundles.get(rid), state.forgotten.get(rid)
        if forgotten is not None and (forgotten["owner"] == me or manifest.at <= forgotten["manifest_at"]):
            continue
        if row is None or (
            row["owner"] != me and row["sha256"] != manifest.sha256_hash and row["manifest_at"] < manifest.at
        ):
            yield KoiEvent(rid=manifest.rid, event_type=EventType.UPDATE, manifest=manifest)


def _is_newer(tx: Reader, manifest: Manifest) -> bool:
    """Whether a manifest is of something that is not known here, or older, and was not forgotten since."""
    if (stored := bundles.find(tx, manifest.rid)) is not None:
        return stored.sha256 != manifest.sha256_hash and stored.manifest_at < manifest.at
    return (bundles.forgotten_at(tx, manifest.rid) or 0) < manifest.at


async def _take(ctx: Ctx, source: KoiNetNode, events: list[KoiEvent]) -> list[RefusedEvent]:
    size, refused = ctx.settings.max_koi_batch_events, []
    for start in range(0, len(events), size):
        refused += (await run.handle(ctx, events[start : start + size], source)).refused
    return refused


class _Sender:
    """Queues for a peer what it has to learn of this node's own, in one transaction.

    What this node owns is read there: it may have published again what it had withdrawn when the peer was asked. What
    the peer has by now does not matter, for it ignores what it knows, and what is older.

    Args:
        manifests: of the peer, those that are credible.
    """

    def __init__(self, tx: Tx, presence: Presence, node: str, manifests: Mapping[str, Manifest]) -> None:
        self._tx = tx
        self._presence = presence
        self._me = str(presence.identity.rid)
        self._node = node
        self._manifests = manifests
        self._changes: list[ItemChange] = []

    def send(self, unknown: Collection[str]) -> list[ItemChange]:
        """Queue what the peer lacks or has in another form, what was withdrawn and it still has, and what it has failed
        with before. The changes of dates.

        Args:
            unknown: what the peer has of this node's own and is not known here.
        """
        tx, state = self._tx, _read_state(self._tx)
        rejections.retry(tx, self._node)
        subscribes, rejected = tx.one(SQL.subscribes, me=self._me, node=self._node), rejections.hashes(tx, self._node)
        for rid, row in state.bundles.items():
            manifest = self._manifests.get(rid)
            if row["owner"] != self._me or rejected.get(rid) == row["sha256"]:
                continue
            if manifest.sha256_hash != row["sha256"] if manifest else subscribes and subscribes["n"]:
                self.update(rids.parse(rid))
        for rid in self._manifests.keys() & (state.forgotten.keys() | unknown) - state.bundles.keys():
            known = state.forgotten.get(rid)
            if (known is None or known["owner"] == self._me) and rejected.get(rid) != rejections.FORGOTTEN:
                self._forget(rid, known["manifest_at"] if known else None)
        return self._changes

    def update(self, rid: RID) -> None:
        """Queue something of this node's own that the peer lacks, or has in another form."""
        own, manifest = bundles.find(self._tx, rid), self._manifests.get(str(rid))
        if own is None:
            return
        if manifest is not None and manifest.at >= own.manifest_at:
            if not self._may_date(own.manifest_at):
                return
            self._date(own, manifest.at)
        elif manifest is None and self._presence.same_key is None:
            forgotten_at = max(self._presence.began, self._presence.forgotten.get(self._node, 0))
            if own.manifest_at < forgotten_at:  # up to when it may have been told to forget it
                self._date(own, own.manifest_at)
        outbox.put(self._tx, self._node, rid, EventType.UPDATE if manifest else EventType.NEW)

    def _forget(self, rid: str, at: int | None) -> None:
        """Queue that something is forgotten, up to what the peer has.

        Args:
            at: up to when it is forgotten here; None: this node does not know it.
        """
        theirs = self._manifests[rid].at
        if at is None or theirs > at:
            if not self._may_date(theirs if at is None else at):
                return
            bundles.bury(self._tx, rid, rids.PERSONALITY, self._me, max(self._tx.now, theirs))
        outbox.put(self._tx, self._node, rids.parse(rid), EventType.FORGET)

    def _may_date(self, at: int) -> bool:
        """Whether this node can give its own another date than it has. What is newer than what it has dated itself
        since it began is of another node with the same key, which would do so as well."""
        if self._presence.same_key is None and at >= self._presence.began:
            self._presence.same_key = self._presence.base_url
        return self._presence.same_key is None

    def _date(self, own: Stored, than: int) -> None:
        """Give a bundle a date after another one."""
        rid = rids.parse(own.rid)
        manifest = bundles.manifest_of(rid, max(self._tx.now, than + 1), own.sha256)
        bundles.touch(self._tx, rid, manifest)
        final.dated(self._tx, rid)
        if isinstance(rid, AgentPersonality):
            profile = PersonalityProfile.model_validate_json(own.contents)
            self._changes.append(ItemChange(rid, EventType.UPDATE, manifest.at, self._me, profile))


def _absent_owners(tx: Reader, state: KnownState, manifests: Mapping[str, Manifest], node: str) -> list[KoiPeer]:
    """The owners of what came from a relay that has it no more: it may have missed or lost it, so they are asked."""
    owners = {row["owner"] for rid, row in state.bundles.items() if row["origin"] == node and rid not in manifests}
    owner_rows = (rows.find(tx, owner) for owner in sorted(owners - {node}))
    return [peer for row in owner_rows if row is not None and (peer := rows.address(row)) is not None]


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


async def _ask_owner(ctx: Ctx, owner: KoiPeer, state: KnownState) -> None:
    answer = await handshake.ask(ctx, owner, MANIFESTS, FetchManifests(rid_types=[rids.PERSONALITY]))
    if isinstance(answer, ManifestsPayload):
        manifests = {str(manifest.rid): manifest for manifest in answer.manifests}
        await _take(ctx, owner.rid, list(_lost(state, manifests, str(owner.rid))))
