"""Finds the node that is contacted first, and holds on to it: another node at its address is not accepted."""

from __future__ import annotations

import asyncio
from functools import partial

from rid_lib.types import KoiNetNode

from workbench.errors import Refused, Unavailable
from workbench.koi import rids
from workbench.koi.node import Presence
from workbench.model import SECOND
from workbench.ops import Ctx
from workbench.rules.tasks.lifecycle import backoff
from workbench.services.personalities.exchange import handshake
from workbench.store.base import Row
from workbench.store.queries import beside

SQL = beside(__file__)


async def seek(ctx: Ctx, presence: Presence) -> None:
    """Introduce this node to the first contact, unless it is known or has just failed."""
    if presence.meeting.retry_at > asyncio.get_running_loop().time():
        return
    row = await ctx.read(lambda tx: tx.one(SQL.unknown))
    if row is not None:
        presence.tasks.start("meeting", row["first_contact_url"], partial(_meet, ctx, presence, row))


async def identify(ctx: Ctx, base_url: str) -> KoiNetNode:
    """Ask a node for its RID, and hold on to it.

    Raises: as `PeerClient.identify`.
    """
    rid = await handshake.present(ctx).client.identify(base_url)
    await ctx.write(lambda tx: tx.run(SQL.pin, url=base_url, rid=str(rid)))
    return rid


async def _meet(ctx: Ctx, presence: Presence, row: Row) -> None:
    url, rid, settings = row["first_contact_url"], row["first_contact_rid"], ctx.settings
    meeting = presence.meeting
    try:
        await handshake.meet(ctx, url, rids.parse_node(rid) if rid else await identify(ctx, url))
    except (Refused, Unavailable) as error:
        if not error.code.startswith("KOI_"):
            raise
        pause = backoff(meeting.failures, settings.koi_retry_base_seconds, settings.koi_retry_cap_seconds, ctx.random())
        meeting.retry_at = asyncio.get_running_loop().time() + pause / SECOND
        meeting.failures, meeting.error = meeting.failures + 1, error.message
    else:
        meeting.failures, meeting.error = 0, None
    finally:
        meeting.tried.set()
