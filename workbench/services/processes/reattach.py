"""Takes back the workers that an earlier server left running: they went on with their commands meanwhile.

A worker counts as the one that was started if its pid, its start time and its mark agree.
"""

from __future__ import annotations

import asyncio
import logging

from workbench.model import SECOND
from workbench.ops import SYSTEM, Ctx
from workbench.services import servers
from workbench.services.processes import termination
from workbench.services.processes.termination import process_of
from workbench.services.tasks.heartbeat import extend_leases
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

RECONNECT = 15 * SECOND
"""The time that a worker has to find the server again, in addition to its lease."""

log = logging.getLogger(__name__)


async def recover(ctx: Ctx, *, end_workers: bool) -> None:
    """Deal with what an earlier server left: take back the workers that run, and clean up after those that ended.

    Args:
        end_workers: end the workers that run, and cancel pending starts, instead.
    """
    await ctx.of(SYSTEM).write(lambda tx: _note_return(tx, ctx))
    if end_workers:
        await termination.end_all(ctx, "left over from an earlier server")
    else:
        await _reattach(ctx.of(SYSTEM))
    await termination.remove_left_scratch(ctx)


def _note_return(tx: Tx, ctx: Ctx) -> None:
    """Record that a server runs again, and since when none did, if there is work that has begun."""
    if servers.others_run(tx, ctx):
        return
    sign = tx.one(SQL.last_sign)
    if sign is not None and sign["at"] is not None:
        tx.emit("server.returned", "server:project", since=sign["at"])


async def _reattach(ctx: Ctx) -> None:
    running = await ctx.read(lambda tx: termination.running_here(tx, ctx))
    recognised = await asyncio.to_thread(lambda: [ctx.local.processes.recognises(process_of(row)) for row in running])
    kept = [row for row, is_known in zip(running, recognised, strict=True) if is_known]
    await termination.record_exits(ctx, [row for row in running if row not in kept])
    await ctx.write(lambda tx: _take_back(tx, ctx, kept))
    if kept:
        log.info("%s workers that an earlier server started go on", len(kept))


def _take_back(tx: Tx, ctx: Ctx, rows: list[Row]) -> None:
    """Extend the leases of workers, and queue the starts that were interrupted again.

    A process whose start was interrupted may run; the new token of the next start shuts it out.
    """
    for row in rows:
        held = extend_leases(tx, row["agent_id"], RECONNECT)
        tx.emit("agent.reattached", f"agent:{row['agent_id']}", pid=row["pid"], holding=held)
    for row in tx.all(SQL.interrupted, machine=ctx.local.machine.only):
        termination.replace_token(tx, row["agent_id"])
        tx.run(SQL.queue, agent=row["agent_id"])
