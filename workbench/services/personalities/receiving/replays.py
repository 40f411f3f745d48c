"""Protects against replay: a request without a date is accepted once.

Envelopes carry no time. What a bundle's manifest dates cannot be undone by an old message; polls and FORGET events
without a manifest have no date, so each of their signatures counts once.
"""

from __future__ import annotations

import base64

from workbench.koi.envelope import Envelope
from workbench.koi.identity import COORDINATE
from workbench.koi.payloads import EventsPayload, EventType, PollEvents
from workbench.ops import Ctx
from workbench.services.personalities.pipeline.rid import is_handshake
from workbench.store.queries import beside

SQL = beside(__file__)


async def is_replayed(ctx: Ctx, envelope: Envelope) -> bool:
    """Whether an envelope, whose signature was checked, was received before. It is noted if that matters."""
    if not _is_undated(envelope):
        return False
    values = {"node": str(envelope.source_node), "mark": _mark(envelope.signature)}
    return not await ctx.write(lambda tx: tx.run(SQL.use, values, now=tx.now))


def _is_undated(envelope: Envelope) -> bool:
    payload = envelope.payload
    if isinstance(payload, PollEvents):
        return True
    if not isinstance(payload, EventsPayload):
        return False
    undated = {event.rid for event in payload.events if event.event_type is EventType.FORGET and event.manifest is None}
    if is_handshake(payload.events, envelope.source_node):
        undated.discard(envelope.source_node)
    return bool(undated)


def _mark(signature: str) -> str:
    """The first of the two numbers of a signature. The second one has two forms that are both valid."""
    return base64.b64decode(signature)[:COORDINATE].hex()
