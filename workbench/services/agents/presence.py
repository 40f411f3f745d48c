"""Presence of agents: records their connections, and makes agents active or inactive accordingly.

An agent is active while it has a connection, a process or a lease, or sends requests; otherwise it becomes inactive.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from workbench.model import SECOND
from workbench.ops import SYSTEM, Caller, Ctx
from workbench.ops.duties import duty
from workbench.services import servers
from workbench.services.agents.rows import activate, deactivate, session_of
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

Transport = Literal["websocket", "sse", "mcp"]


def opened(tx: Tx, caller: Caller, transport: Transport, client_id: str, server: str) -> int:
    """Record a connection and make its agent active. `server` is the nonce of the server that holds it."""
    assert caller.agent is not None
    values = {"client_id": client_id, "client": caller.client, "address": caller.address, "server": server}
    row = tx.one(SQL.open, values, agent=caller.agent, transport=transport, now=tx.now)
    assert row is not None
    data = {"transport": transport, "client_id": client_id}
    tx.emit("agent.connected", f"agent:{caller.agent}", session=caller.session, **data)
    activate(tx, caller.agent)
    return int(row["id"])


def closed(tx: Tx, connection: int, reason: str = "disconnected") -> None:
    """Record the end of a connection. An agent without another one, and without a process, becomes inactive."""
    row = tx.one(SQL.close, id=connection, now=tx.now)
    if row is None:
        return
    agent = row["agent_id"]
    data = {"transport": row["transport"], "reason": reason}
    tx.emit("agent.disconnected", f"agent:{agent}", session=session_of(tx, agent), **data)
    if not tx.one(SQL.another, agent=agent) and not tx.one(SQL.has_process, agent=agent):
        deactivate(tx, agent, reason)


def close_left_open(tx: Tx, servers: Collection[str]) -> None:
    """Record that the connections of servers that are gone, given by their nonces, have ended."""
    for server in servers:
        for row in tx.all(SQL.left_open, server=server):
            closed(tx, row["id"], "its server has ended")


def touch_presence(tx: Tx, agent_uid: str) -> None:
    """Record that an agent sent a request: it becomes active, but its leases are not renewed."""
    tx.run(SQL.touch, id=agent_uid, now=tx.now)
    activate(tx, agent_uid)


@duty("expiring presence", lambda settings: min(5.0, settings.silent_seconds / 4), serving=False)
async def expire_due(ctx: Ctx) -> None:
    """Make agents inactive that have no connection, process or lease and have sent nothing for `silent_seconds`."""
    if not ctx.local.machine.is_alone and (left := await ctx.read(lambda tx: servers.left_connected(tx, ctx.settings))):
        await ctx.of(SYSTEM).write(lambda tx: close_left_open(tx, left))
    silent = int(ctx.settings.silent_seconds * SECOND)
    if await ctx.read(lambda tx: someone_silent(tx, tx.now - silent)):
        await ctx.of(SYSTEM).write(lambda tx: expire_presence(tx, tx.now - silent))


def someone_silent(tx: Reader, since: int) -> bool:
    """Whether `expire_presence` has anything to do."""
    return bool(tx.all(SQL.silent, since=since))


def expire_presence(tx: Tx, since: int) -> None:
    """Make active agents inactive that have no connection, process or lease and have sent nothing since a time."""
    for row in tx.all(SQL.silent, since=since):
        deactivate(tx, row["id"], "no heartbeat")
