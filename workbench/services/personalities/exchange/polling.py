"""Polling: answers the polls of other nodes, and polls those whose edge to this one has the type POLL."""

from __future__ import annotations

from rid_lib.types import KoiNetNode

from workbench.koi.payloads import EventsPayload, KoiEvent, PollEvents
from workbench.koi.requests import POLL, KoiPeer
from workbench.ops import Ctx
from workbench.services.personalities.exchange import handshake
from workbench.services.personalities.peers import outbox
from workbench.services.personalities.pipeline import run


async def answer(ctx: Ctx, node: KoiNetNode, limit: int) -> list[KoiEvent]:
    """What waits for a node that polls.

    The protocol has no acknowledgement: an answer may be lost on its way. So each event is in two answers; whoever has
    it already ignores the second.

    Args:
        limit: most events; 0: as many as one request may have.
    """
    most = ctx.settings.max_koi_batch_events
    answered = handshake.present(ctx).answered
    waiting = await ctx.read(lambda tx: outbox.first(tx, str(node), min(limit, most) if limit > 0 else most))
    ids, before = {event.id for event in waiting}, answered.get(str(node), set())
    answered[str(node)] = ids - before
    if again := ids & before:
        await ctx.write(lambda tx: outbox.remove(tx, again))
    return [event.event for event in waiting if event.event is not None]


async def poll(ctx: Ctx, peer: KoiPeer) -> None:
    """Fetch what waits at a peer for this node.

    Raises: as `PeerClient.exchange`.
    """
    most = ctx.settings.max_koi_batch_events
    while True:
        payload = await handshake.ask(ctx, peer, POLL, PollEvents(limit=most))
        events = payload.events if isinstance(payload, EventsPayload) else []
        await run.handle(ctx, events, peer.rid)
        if len(events) < most:
            return
