"""Introduces this node to the first contact, to nodes that greet it, and to peers that have forgotten it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rid_lib.types import KoiNetNode

from workbench.errors import Refused, Unavailable
from workbench.koi import rids
from workbench.koi.node import Presence
from workbench.koi.payloads import ErrorType, EventsPayload, EventType, KoiEvent, Payload
from workbench.koi.requests import BROADCAST, KoiPeer
from workbench.ops import Ctx
from workbench.services.personalities import bundles
from workbench.services.personalities.exchange import edges
from workbench.services.personalities.peers import outbox, rejections, rows
from workbench.services.personalities.pipeline import run
from workbench.store.base import Tx

PAUSES = (0.02, 0.1, 0.5)
"""Seconds. koi-net answers a greeting before it has noted the node, so what follows may come too early."""

T = TypeVar("T")


def present(ctx: Ctx) -> Presence:
    """This node, as others see it.

    Raises:
        Unavailable: ``KOI_NOT_JOINED``.
    """
    if ctx.node.presence is None:
        raise Unavailable("KOI_NOT_JOINED", "This node takes no part in a network now.")
    return ctx.node.presence


async def ask(ctx: Ctx, peer: KoiPeer, path: str, payload: Payload) -> Payload | None:
    """Ask a peer; if it does not know this node, greet it first.

    Raises: as `PeerClient.exchange`.
    """
    client = present(ctx).client
    try:
        return await client.ask(peer, path, payload)
    except Refused as refusal:
        if not _is_unknown(refusal):
            raise
    await greet(ctx, peer)
    return await _ask_greeted(lambda: client.ask(peer, path, payload))


async def greet(ctx: Ctx, peer: KoiPeer) -> None:
    """Introduce this node to a peer, and agree on the edge with it anew, for it may have forgotten both.

    Raises: as `PeerClient.exchange`.
    """
    presence, me = present(ctx), str(present(ctx).identity.rid)
    await _introduce(ctx, peer, forget=False)
    presence.compared.pop(str(peer.rid), None)
    presence.forgotten[str(peer.rid)] = ctx.store.now()

    def queue(tx: Tx) -> None:
        rejections.clear(tx, str(peer.rid))
        row = rows.find(tx, peer.rid)
        if row is not None and row["is_relay"]:
            outbox.put_known(tx, str(peer.rid), [rids.PERSONALITY], me=me, everything=False)

    await ctx.write(queue)
    await edges.renew(ctx, presence.identity.rid, peer.rid)


async def answer(ctx: Ctx, node: KoiNetNode) -> None:
    """Introduce this node to one that has introduced itself, and propose the edge from it."""
    me = present(ctx).identity.rid
    present(ctx).forgotten[str(node)] = ctx.store.now()

    def queue(tx: Tx) -> bool:
        if rows.find(tx, node) is None:
            return False  # it has left, or made room for others
        rejections.clear(tx, str(node))
        outbox.put(tx, str(node), me, EventType.NEW)
        return True

    if not await ctx.write(queue):
        return
    await edges.renew(ctx, me, node)
    ctx.node.has_mail.set()


async def meet(ctx: Ctx, base_url: str, rid: KoiNetNode) -> None:
    """Introduce this node to the first contact, whose key is not known yet, and note who that is.

    Raises: as `PeerClient.exchange`; Refused: ``KOI_OTHER_NODE``: the node at the URL is another one.
    """
    presence, me = present(ctx), str(present(ctx).identity.rid)
    try:
        await _introduce(ctx, KoiPeer(rid, base_url, ""), forget=True)
        bundle = await _ask_greeted(lambda: presence.client.meet(rid, base_url))
    except Refused as refusal:
        if refusal.details.get("error") != ErrorType.INVALID_TARGET:
            raise
        raise Refused(
            "KOI_OTHER_NODE",
            f"The node at {base_url} is not {rid}, which was the first contact. If it is meant, leave the network and "
            "join again.",
        ) from None
    event = KoiEvent(rid=rid, event_type=EventType.NEW, manifest=bundle.manifest, contents=bundle.contents)
    await run.handle(ctx, [event], rid)

    def queue(tx: Tx) -> None:
        tx.run(rows.SQL.set_relay, rid=str(rid))
        outbox.put_known(tx, str(rid), [rids.PERSONALITY], me=me, everything=False)

    await ctx.write(queue)
    ctx.node.has_mail.set()


async def _introduce(ctx: Ctx, peer: KoiPeer, *, forget: bool) -> None:
    """Tell a node who this one is.

    Args:
        forget: have it forget first what it knew of this one. A node that does not know this one may have been told
            already, and only not have noted it yet: it would then forget the edges that were agreed on meanwhile.
    """
    presence = present(ctx)
    me = presence.identity.rid
    own = await ctx.read(lambda tx: bundles.find(tx, me))
    if own is None:
        raise Unavailable("KOI_NOT_JOINED", "This node has just left the network.")
    event = KoiEvent(rid=me, event_type=EventType.NEW, manifest=own.bundle.manifest, contents=own.bundle.contents)
    before = [KoiEvent(rid=me, event_type=EventType.FORGET)] if forget else []
    await presence.client.ask(peer, BROADCAST, EventsPayload(events=[*before, event]))


async def _ask_greeted(request: Callable[[], Awaitable[T]]) -> T:
    """The result of a request to a node that was just greeted."""
    for pause in PAUSES:
        try:
            return await request()
        except Refused as refusal:
            if not _is_unknown(refusal):
                raise
        await asyncio.sleep(pause)
    return await request()


def _is_unknown(refusal: Refused) -> bool:
    return refusal.details.get("error") == ErrorType.UNKNOWN_NODE
