"""Sends what waits for a peer: some events in each request, one request at a time."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from workbench.errors import Refused, Unavailable
from workbench.koi.payloads import ErrorType, EventsPayload, KoiEvent
from workbench.koi.requests import BROADCAST, KoiPeer
from workbench.ops import Ctx
from workbench.services.personalities.exchange import handshake
from workbench.services.personalities.peers import outbox, rejections
from workbench.services.personalities.peers.outbox import WaitingEvent

FAULT_OF_EVENTS = frozenset({400, 413, 415, 422})
"""Statuses of answers by which a peer says that it will never accept the same request."""
FAILED = 500
"""Status of an answer by which a peer says that it has failed."""

log = logging.getLogger(__name__)


async def deliver(ctx: Ctx, peer: KoiPeer) -> None:
    """Send everything that waits for a peer, in order, unless the peer fetches it: it may have begun to meanwhile.

    Raises: as `PeerClient.exchange`; what was not sent waits.
    """
    limit, me = ctx.settings.max_koi_batch_events, str(handshake.present(ctx).identity.rid)
    while waiting := await ctx.read(lambda tx: outbox.first_to_send(tx, me, str(peer.rid), limit)):
        batch = list(_within(waiting, ctx.settings.max_koi_batch_bytes))
        await _send(ctx, peer, batch)
        event_ids = [event.id for event in batch]
        await ctx.write(lambda tx: outbox.remove(tx, event_ids))  # noqa: B023 (it runs before the next round)


def _within(waiting: Sequence[WaitingEvent], largest: int) -> Iterator[WaitingEvent]:
    """The first events, up to a size together; at least one."""
    size = 0
    for event in waiting:
        size += event.size
        if size > largest and size > event.size:
            return
        yield event


async def _send(ctx: Ctx, peer: KoiPeer, batch: Sequence[WaitingEvent]) -> None:
    """Send events together; one by one if they are rejected together. One that is rejected alone is recorded."""
    events = [one.event for one in batch if one.event is not None]
    if not events or (error := await _rejection(ctx, peer, events)) is None:
        return
    if len(batch) > 1:
        for one in batch:
            await _send(ctx, peer, [one])
        return
    if not _is_fault_of_events(error):  # all requests may have failed, and no longer did when it was asked
        error = await _rejection(ctx, peer, events)
    if error is not None:
        log.warning("%s does not accept an event of %s: %s", peer.rid, events[0].rid, error.message)
        is_final = error.details.get("status") != FAILED
        note = partial(rejections.note, node=str(peer.rid), event=events[0], error=error, is_final=is_final)
        await ctx.write(note)


async def _rejection(ctx: Ctx, peer: KoiPeer, events: Sequence[KoiEvent]) -> Refused | Unavailable | None:
    """Send events; the error if the peer rejects these, and not all requests of this node.

    Raises: as `PeerClient.exchange`.
    """
    try:
        await handshake.ask(ctx, peer, BROADCAST, EventsPayload(events=list(events)))
    except (Refused, Unavailable) as error:
        if not await _is_about_events(ctx, peer, error):
            raise
        return error
    return None


def _is_fault_of_events(error: Refused | Unavailable) -> bool:
    return error.details.get("status") in FAULT_OF_EVENTS


async def _is_about_events(ctx: Ctx, peer: KoiPeer, error: Refused | Unavailable) -> bool:
    """Whether a peer rejects what is in a request, and not all requests of this node.

    A signature does not fit, and a peer fails, for either reason: so it is asked to accept a request without events.

    Raises: as `PeerClient.exchange`.
    """
    if _is_fault_of_events(error):
        return True
    if error.details.get("status") != FAILED and error.details.get("error") != ErrorType.INVALID_SIGNATURE:
        return False
    await handshake.ask(ctx, peer, BROADCAST, EventsPayload(events=[]))
    return True
