"""What a batch lacks is fetched from its sender: manifests first, then the bundles that are new here."""

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
from workbench.ops import Ctx
from workbench.services.personalities import bundles
from workbench.services.personalities.peers import rows


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the sender provided.

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
        if event.event_type is not EventType.FORGET and (event.manifest is None or event.contents is None)
    ]
    if not incomplete:
        return Fetched({}, {})
    row = await ctx.store.read_inline(lambda tx: rows.find(tx, source))
    peer = rows.address(row) if row else None
    if peer is None:
        return Fetched({}, {}, "the sender cannot be asked for it")
    try:
        return await _fetched(ctx, peer, incomplete)
    except (Refused, Unavailable) as error:
        return Fetched({}, {}, f"the sender did not provide it ({error.code})")


async def _fetched(ctx: Ctx, peer: KoiPeer, events: Sequence[KoiEvent]) -> Fetched:
    without = [event.rid for event in events if event.manifest is None]
    manifests = await _manifests(ctx, peer, without) if without else {}
    stated = {event.rid: event.manifest for event in events if event.manifest is not None} | manifests
    unknown = [event.rid for event in events if event.rid in stated and event.contents is None]
    wanted = await _wanted(ctx, {rid: stated[rid] for rid in unknown})
    return Fetched(manifests, await _bundles(ctx, peer, wanted) if wanted else {})


async def _wanted(ctx: Ctx, stated: Mapping[RID, Manifest]) -> list[RID]:
    """The RIDs whose contents differ from those that are known."""
    known = await ctx.read(lambda tx: {one.rid: one.sha256 for one in bundles.find_all(tx, stated)})
    return [rid for rid, manifest in stated.items() if known.get(str(rid)) != manifest.sha256_hash]


async def _manifests(ctx: Ctx, peer: KoiPeer, rids: list[RID]) -> dict[RID, Manifest]:
    answer = await _ask(ctx, peer, MANIFESTS, FetchManifests(rids=rids))
    found = answer.manifests if isinstance(answer, ManifestsPayload) else []
    return {one.rid: one for one in found if one.rid in rids}


async def _bundles(ctx: Ctx, peer: KoiPeer, rids: list[RID]) -> dict[RID, Bundle]:
    answer = await _ask(ctx, peer, BUNDLES, FetchBundles(rids=rids))
    found = answer.bundles if isinstance(answer, BundlesPayload) else []
    return {one.manifest.rid: one for one in found if one.manifest.rid in rids}


async def _ask(ctx: Ctx, peer: KoiPeer, path: str, payload: Payload) -> Payload | None:
    presence = ctx.node.presence
    return await presence.client.ask(peer, path, payload) if presence else None
