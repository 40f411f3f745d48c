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
from workbench.koi.payloads import FetchManifests
from workbench.koi.requests import MANIFESTS, KoiPeer
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
ASKED_PER_SECOND = 20
"""Where there are very many neighbours, each is asked less often."""
ANSWERED = 50
"""How many nodes that have introduced themselves are answered in a round."""
MOST_NOTES = 2
"""When there are notes about more than this many times `max_koi_nodes`, those about nodes that were dropped go."""
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


async def compare_again(ctx: Ctx, peer: KoiNetNode) -> None:
    """Compare a peer with this node soon: something that it sent was not taken in."""
    presence, now = handshake.present(ctx), asyncio.get_running_loop().time()
    if _is_due(presence.hurried, str(peer), now, HURRY):
        presence.hurried[str(peer)] = now
        presence.compared.pop(str(peer), None)
        ctx.node.has_mail.set()


async def heard(ctx: Ctx, row: Row) -> None:
    """Record that a node has sent something."""
    if ctx.store.now() - row["last_seen"] > NOTED:
        await ctx.store.write(lambda tx: tx.run(rows.SQL.heard, rid=row["rid"], now=tx.now))


async def _round(ctx: Ctx, presence: Presence) -> None:
    me = presence.identity.rid
    due = await ctx.read(lambda tx: rows.due(tx, str(me)))
    asks = max(ctx.settings.koi_ask_seconds, sum(row["is_neighbour"] for row in due) / ASKED_PER_SECOND)
    for row in due:
        _start(ctx, presence, row, asks)
    with suppress(Unavailable):  # the servers have just stopped
        await first_contact.seek(ctx, presence)
        await _answer(ctx, presence)
        await edges.settle(ctx, me)
    if len(presence.forgotten) > MOST_NOTES * ctx.settings.max_koi_nodes:
        presence.keep(await ctx.read(rows.known))


async def _woken(node: Node) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(PAUSE if node.presence else LONG_PAUSE):
            await node.has_mail.wait()


async def _answer(ctx: Ctx, presence: Presence) -> None:
    """Answer the nodes that have introduced themselves, the latest first: a crowd delays no newcomer."""
    for _ in range(min(len(presence.greeted), ANSWERED)):
        peer, _ = presence.greeted.popitem()
        presence.compared.pop(peer, None)
        await handshake.answer(ctx, rids.parse_node(peer))
    if presence.greeted:
        ctx.node.has_mail.set()


def _start(ctx: Ctx, presence: Presence, row: Row, asks: float) -> None:
    """Start what is due for a peer.

    Args:
        asks: seconds after which a neighbour is asked whether it is there.
    """
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
    if row["is_neighbour"] and _is_due(presence.asked, rid, now, asks):
        start("question", rid, partial(_attempt, ctx, presence, peer, row, _ask))


def _is_due(last_times: dict[str, float], peer: str, now: float, seconds: float) -> bool:
    return peer not in last_times or now - last_times[peer] >= seconds


async def _compare(ctx: Ctx, peer: KoiPeer) -> None:
    compared, rid = handshake.present(ctx).compared, str(peer.rid)
    compared[rid] = asyncio.get_running_loop().time()  # before: what happens meanwhile may ask for another one
    try:
        await reconciliation.compare(ctx, peer)
    except BaseException:
        compared.pop(rid, None)
        raise


async def _ask(ctx: Ctx, peer: KoiPeer) -> None:
    """Have a peer answer, signed: with its own manifest, which every node has."""
    await handshake.ask(ctx, peer, MANIFESTS, FetchManifests(rids=[peer.rid]))


async def _attempt(ctx: Ctx, presence: Presence, peer: KoiPeer, row: Row, work: Work) -> None:
    """Do something with a peer, and record whether it could be reached."""
    rid, settings = str(peer.rid), ctx.settings
    presence.asked[rid] = asyncio.get_running_loop().time()
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
