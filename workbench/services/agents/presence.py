"""Who is connected now: a row for each live connection of an agent, and what follows for its state.

An agent is active while it has a connection or is heard of, and inactive when neither is so.
"""

from __future__ import annotations

from typing import Literal

from workbench.model import SECOND
from workbench.ops import SYSTEM, Caller, Ctx
from workbench.services.agents.rows import session_of
from workbench.services.agents.status import activate, deactivate
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

Transport = Literal["websocket", "sse", "mcp"]


def opened(tx: Tx, caller: Caller, transport: Transport, client_id: str, server: str) -> int:
    """An agent has connected: it is active. `server` is the nonce of the server that holds the connection."""
    assert caller.agent is not None
    values = {"client_id": client_id, "client": caller.client, "address": caller.address, "server": server}
    row = tx.one(SQL.open, values, agent=caller.agent, transport=transport, now=tx.now)
    assert row is not None
    told = {"transport": transport, "client_id": client_id}
    tx.emit("agent.connected", f"agent:{caller.agent}", session=caller.session, **told)
    activate(tx, caller.agent)
    return int(row["id"])


def closed(tx: Tx, connection: int, reason: str = "disconnected") -> None:
    """A connection has ended; an agent whose last one it was is inactive."""
    row = tx.one(SQL.close, id=connection, now=tx.now)
    if row is None:
        return
    agent = row["agent_id"]
    told = {"transport": row["transport"], "reason": reason}
    tx.emit("agent.disconnected", f"agent:{agent}", session=session_of(tx, agent), **told)
    if not tx.one(SQL.another, agent=agent) and not tx.one(SQL.has_process, agent=agent):
        deactivate(tx, agent, reason)


def close_others(tx: Tx, server: str) -> None:
    """What a server that is gone has left open is closed."""
    for row in tx.all(SQL.left_open, server=server):
        closed(tx, row["id"], "the server was restarted")


def touch_presence(tx: Tx, agent_uid: str) -> None:
    """An agent has asked for something: that is a heartbeat of its presence, though not of its leases."""
    tx.run(SQL.touch, id=agent_uid, now=tx.now)
    activate(tx, agent_uid)


async def expire_due(ctx: Ctx) -> None:
    """Make agents inactive that have no connection and have sent no heartbeat for a while."""
    silent = int(ctx.settings.silent_seconds * SECOND)
    if await ctx.read(lambda tx: someone_silent(tx, tx.now - silent)):
        await ctx.of(SYSTEM).write(lambda tx: expire_presence(tx, tx.now - silent))


def someone_silent(tx: Reader, since: int) -> bool:
    """Whether `expire_presence` would find anybody."""
    return bool(tx.all(SQL.silent, since=since))


def expire_presence(tx: Tx, since: int) -> None:
    """Active agents without a connection that were not heard of since a time are inactive."""
    for row in tx.all(SQL.silent, since=since):
        deactivate(tx, row["id"], "nothing was heard of it")
