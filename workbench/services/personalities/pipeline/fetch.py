"""Fetches from the sender of a batch what it lacks: manifests first, then the bundles that are new here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rid_lib import RID
from rid_lib.types import KoiNetNode

from workbench.errors import Refused, Unavailable
from workbench.koi.payloads import (
    Bundle,
    BundlesPayload,
    EventType,
    FetchBundles,
    FetchManifests,
    KoiEvent,
    Manifest,
    ManifestsPayload,
    Payload,
)
from workbench.koi.requests import BUNDLES, MANIFESTS, KoiPeer
from workbench.koi.rids import ForeignRid
from workbench.ops import Ctx
from workbench.services.personalities import bundles
from workbench.services.personalities.peers import rows


@dataclass(frozen=True, slots=True)
class Fetched:
    """Manifests and bundles from the sender.

    Args:
        problem: why it did not provide the rest.
    """

    manifests: Mapping[RID, Manifest]
    bundles: Mapping[RID, Bundle]
    problem: str = "the sender does not have it"


async def missing(ctx: Ctx, source: KoiNetNode, events: Sequence[KoiEvent]) -> Fetched:
    """The manifests and the bundles that events lack, as far as their sender provides them.

    The contents of a bundle that is known already are not fetched.
    """
    incomplete = [
        event
        for event in events
        if event.event_type is not EventType.FORGET
        and not isinstance(event.rid, ForeignRid)
        and (event.manifest is None or event.contents is None)
    ]
    if not incomplete:
        return Fetched({}, {})
    row = await ctx.store.read_inline(lambda tx: rows.find(tx, source))
    peer = rows.address(row) if row else None
    if peer is None:
        return Fetched({}, {}, "the sender cannot be asked for it")
    try:
        return await _fetch(ctx, peer, incomplete)
    except (Refused, Unavailable) as error:
        return Fetched({}, {}, f"the sender did not provide it ({error.code})")


async def _fetch(ctx: Ctx, peer: KoiPeer, events: Sequence[KoiEvent]) -> Fetched:
    without = [event.rid for event in events if event.manifest is None]
    manifests = await _manifests(ctx, peer, without) if without else {}
    stated = {event.rid: event.manifest for event in events if event.manifest is not None} | manifests
    unknown = [event.rid for event in events if event.rid in stated and event.contents is None]
    unknown_rids = await _unknown(ctx, {rid: stated[rid] for rid in unknown})
    return Fetched(manifests, await _bundles(ctx, peer, unknown_rids) if unknown_rids else {})


async def _unknown(ctx: Ctx, stated: Mapping[RID, Manifest]) -> list[RID]:
    """The RIDs whose contents differ from those that are known."""
    hashes = await ctx.read(lambda tx: {bundle.rid: bundle.sha256 for bundle in bundles.find_all(tx, stated)})
    return [rid for rid, manifest in stated.items() if hashes.get(str(rid)) != manifest.sha256_hash]


async def _manifests(ctx: Ctx, peer: KoiPeer, rids: list[RID]) -> dict[RID, Manifest]:
    answer = await _ask(ctx, peer, MANIFESTS, FetchManifests(rids=rids))
    manifests = answer.manifests if isinstance(answer, ManifestsPayload) else []
    return {manifest.rid: manifest for manifest in manifests if manifest.rid in rids}


async def _bundles(ctx: Ctx, peer: KoiPeer, rids: list[RID]) -> dict[RID, Bundle]:
    answer = await _ask(ctx, peer, BUNDLES, FetchBundles(rids=rids))
    fetched = answer.bundles if isinstance(answer, BundlesPayload) else []
    return {bundle.manifest.rid: bundle for bundle in fetched if bundle.manifest.rid in rids}


async def _ask(ctx: Ctx, peer: KoiPeer, path: str, payload: Payload) -> Payload | None:
    presence = ctx.node.presence
    return await presence.client.ask(peer, path, payload) if presence else None
