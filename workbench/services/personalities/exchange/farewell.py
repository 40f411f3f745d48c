"""Takes leave of the peers: withdraws there what this node has published."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from rid_lib.types import KoiNetNode

from workbench.errors import Refused, Unavailable
from workbench.koi.node import Presence
from workbench.koi.payloads import EventType, KoiEvent
from workbench.koi.requests import KoiPeer
from workbench.ops import Ctx
from workbench.services.personalities.exchange import delivery
from workbench.services.personalities.peers import outbox, rows
from workbench.services.personalities.pipeline import network, run
from workbench.store.base import Tx


async def say(ctx: Ctx, presence: Presence) -> None:
    """Forget this node, its edges and its personalities, and tell the neighbours, as far as they answer in time."""
    await presence.tasks.close()
    me = presence.identity.rid
    neighbours = await ctx.read(lambda tx: network.neighbours(tx, str(me)).all)
    await run.handle(ctx, [KoiEvent(rid=me, event_type=EventType.FORGET)], None)
    peers = await ctx.write(lambda tx: _queue(tx, me, sorted(neighbours)))
    with suppress(TimeoutError):
        async with asyncio.timeout(ctx.settings.koi_leave_seconds):
            await asyncio.gather(*(_deliver(ctx, peer) for peer in peers))


def _queue(tx: Tx, me: KoiNetNode, nodes: list[str]) -> list[KoiPeer]:
    """Also for those whose edges have just been forgotten."""
    for node in nodes:
        outbox.put(tx, node, me, EventType.FORGET)
    peer_rows = (rows.find(tx, node) for node in nodes)
    return [peer for row in peer_rows if row is not None and (peer := rows.address(row)) is not None]


async def _deliver(ctx: Ctx, peer: KoiPeer) -> None:
    with suppress(Refused, Unavailable):
        await delivery.deliver(ctx, peer)
