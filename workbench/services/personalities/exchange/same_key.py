"""Another node with the key of this one: a copy of its project, or the one that it was copied from.

Peers keep what is dated last, so two such nodes take address and personalities from each other. Neither knows which of
them is meant, so each says that there is another one, and publishes nothing over what that one has published.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from pydantic import ValidationError
from rid_lib.types import KoiNetEdge

from workbench.errors import Conflict, Refused, Unavailable
from workbench.koi.node import Presence
from workbench.koi.nodes import NodeProfile
from workbench.koi.payloads import (
    Bundle,
    BundlesPayload,
    EventsPayload,
    EventType,
    FetchBundles,
    KoiEvent,
    Payload,
)
from workbench.koi.requests import BROADCAST, BUNDLES, KoiPeer
from workbench.model import SECOND
from workbench.ops import Ctx
from workbench.present.inert import inert_line

SECONDS = 3.0
"""How long another node may take to answer: a start of the servers waits for it."""


def error(base_url: str) -> Conflict:
    """That another node uses the key, at an address."""
    return Conflict(
        "KOI_KEY_SHARED",
        f"Another node uses the key of this one, at {inert_line(base_url)}: one is a copy of the other. Others cannot "
        "tell them apart. Stop one of the two, or delete .aiswarm/koi/key.pem in its project and start it again, which "
        "makes it a node of its own.",
    )


async def probe(ctx: Ctx, presence: Presence, base_url: str) -> bool:
    """Whether another node with this one's key answers at an address; if so, note it, and tell it this one's.

    Once one that did has ended, all that is here may be published over what that one has published, and to peers that
    forgot it when they compared themselves with that one.
    """
    peer = KoiPeer(presence.identity.rid, base_url, presence.identity.public_key)
    mark = KoiNetEdge(secrets.token_hex())  # which its answer has to name, so that no old one counts
    request = FetchBundles(rids=[peer.rid, mark])
    try:
        answer = await presence.client.ask(peer, BUNDLES, request, seconds=SECONDS)
    except (Refused, Unavailable):
        answer = None
    there = _address(answer, mark, peer)
    is_other = there is not None and there != presence.base_url
    if not is_other and presence.same_key not in (None, presence.base_url):
        presence.began = ctx.store.now()
    presence.same_key = base_url if is_other else None
    if is_other:
        await _tell(ctx, presence, peer)
    return is_other


async def _tell(ctx: Ctx, presence: Presence, peer: KoiPeer) -> None:
    """Tell the other node where this one is, with the time of now."""
    contents = presence.profile().model_dump(mode="json", by_alias=True)
    bundle = Bundle.generate(peer.rid, contents, ctx.store.now())
    event = KoiEvent(rid=peer.rid, event_type=EventType.UPDATE, manifest=bundle.manifest, contents=bundle.contents)
    try:
        await presence.client.ask(peer, BROADCAST, EventsPayload(events=[event]), seconds=SECONDS)
    except (Refused, Unavailable):
        return


def note(ctx: Ctx, presence: Presence, events: Sequence[KoiEvent]) -> None:
    """Note what another node with this one's key has just said about itself. What it said long ago may be replayed."""
    for event in events:
        if event.rid != presence.identity.rid or event.manifest is None or event.contents is None:
            continue
        is_fresh = abs(ctx.store.now() - event.manifest.at) <= ctx.settings.koi_skew_seconds * SECOND
        url = address(event.contents)
        if is_fresh and url is not None and url != presence.base_url:
            presence.same_key = url


def address(contents: dict[str, object]) -> str | None:
    """The address in the contents of a node's bundle; None if there is none that a request can go to."""
    try:
        url = NodeProfile.model_validate(contents).base_url
    except ValidationError:
        return None
    return url if url is not None and url.startswith(("http://", "https://")) else None


def _address(answer: Payload | None, mark: KoiNetEdge, peer: KoiPeer) -> str | None:
    if not isinstance(answer, BundlesPayload) or mark not in answer.not_found:
        return None
    return next((address(bundle.contents) for bundle in answer.bundles if bundle.rid == peer.rid), None)
