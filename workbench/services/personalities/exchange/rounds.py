"""Looks what is due for each peer, and starts it. Peers are independent: a slow one delays no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from rid_lib.types import KoiNetNode

from workbench.errors import Refused, Unavailable
from workbench.koi import rids
from workbench.koi.node import Node, Presence
from workbench.koi.requests import KoiPeer
from workbench.model import SECOND
from workbench.ops import Ctx
from workbench.ops.duties import duty
from workbench.rules.tasks.lifecycle import backoff
from workbench.services.personalities.exchange import delivery, edges, first_contact, handshake, polling, reconciliation
from workbench.services.personalities.peers import rows
from workbench.store.base import Row

PAUSE, LONG_PAUSE = 0.25, 5.0
"""Seconds between rounds if nothing happens; the latter while this node takes part in no network."""
HURRY = 1.0
"""Seconds between two times that a peer is tried again early: one that sends something may still not be reachable."""
NOTED = 10 * SECOND
"""The least time between two records that a peer was reached."""

Work = Callable[[Ctx, KoiPeer], Awaitable[None]]


@duty("attending to KOI peers", 0.01)
async def attend(ctx: Ctx) -> None:
    """Wait until something may be due for peers, and start it."""
    await _woken(ctx.node)
    presence = ctx.node.presence
    if presence is None:
        ctx.node.has_mail.clear()
        return
    async with presence.turn:
        if ctx.node.presence is presence:  # it may have left meanwhile
            ctx.node.has_mail.clear()
            await _round(ctx, presence)


async def hurry(ctx: Ctx, presence: Presence, peer: KoiNetNode) -> None:
    """Try a peer again at once, though requests to it have failed: it has just sent something, so it runs again."""
    now = asyncio.get_running_loop().time()
    if _is_due(presence.hurried, str(peer), now, HURRY):
        presence.hurried[str(peer)] = now
        await ctx.store.write(lambda tx: tx.run(rows.SQL.retry, rid=str(peer)))
        ctx.node.has_mail.set()


async def _round(ctx: Ctx, presence: Presence) -> None:
    me = presence.identity.rid
    for row in await ctx.read(lambda tx: rows.due(tx, str(me))):
        _start(ctx, presence, row)
    with suppress(Unavailable):  # the servers have just stopped
        await first_contact.seek(ctx, presence)
        await _answer(ctx, presence)
        await edges.settle(ctx, me)


async def _woken(node: Node) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(PAUSE if node.presence else LONG_PAUSE):
            await node.has_mail.wait()


async def _answer(ctx: Ctx, presence: Presence) -> None:
    """Answer the nodes that have introduced themselves."""
    while presence.greeted:
        peer = presence.greeted.pop()
        presence.compared.pop(peer, None)
        await handshake.answer(ctx, rids.parse_node(peer))


def _start(ctx: Ctx, presence: Presence, row: Row) -> None:
    """Start what is due for a peer."""
    peer, rid, now = rows.address(row), str(row["rid"]), asyncio.get_running_loop().time()
    if peer is None:
        return
    settings, start = ctx.settings, presence.tasks.start
    if row["has_mail"]:
        start("delivery", rid, partial(_attempt, ctx, presence, peer, row, delivery.deliver))
    if row["is_neighbour"] and _is_due(presence.compared, rid, now, settings.koi_reconcile_seconds):
        start("comparison", rid, partial(_attempt, ctx, presence, peer, row, _compare))
    if row["is_polled"] and _is_due(presence.polled, rid, now, settings.koi_poll_seconds):
        presence.polled[rid] = now
        start("poll", rid, partial(_attempt, ctx, presence, peer, row, polling.poll))


def _is_due(done: dict[str, float], peer: str, now: float, seconds: float) -> bool:
    return peer not in done or now - done[peer] >= seconds


async def _compare(ctx: Ctx, peer: KoiPeer) -> None:
    began = asyncio.get_running_loop().time()
    await reconciliation.compare(ctx, peer)
    handshake.present(ctx).compared[str(peer.rid)] = began


async def _attempt(ctx: Ctx, presence: Presence, peer: KoiPeer, row: Row, work: Work) -> None:
    """Do something with a peer, and record whether it could be reached."""
    rid, settings = str(peer.rid), ctx.settings
    try:
        await work(ctx, peer)
    except (Refused, Unavailable) as error:
        if not error.code.startswith("KOI_") or ctx.node.presence is not presence:
            raise
        presence.compared.pop(rid, None)
        pause = backoff(row["failures"], settings.koi_retry_base_seconds, settings.koi_retry_cap_seconds, ctx.random())
        message = error.message
        await ctx.write(lambda tx: rows.failed(tx, rid, message, tx.now + pause))
    else:
        if row["failures"] or ctx.store.now() - row["last_seen"] > NOTED:
            await ctx.write(lambda tx: rows.reached(tx, rid))
