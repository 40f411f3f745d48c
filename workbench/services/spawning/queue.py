"""The spawn queue: agents beyond the limits of the settings wait, and start in the order of their requests."""

from __future__ import annotations

import logging
from collections import Counter

from workbench.errors import WorkbenchError
from workbench.model import Registration
from workbench.ops import Ctx
from workbench.ops.duties import duty
from workbench.rules import access
from workbench.services.processes import termination
from workbench.services.spawning.launch import launch
from workbench.services.spawning.request import SQL
from workbench.store.base import Reader, Row, Tx

log = logging.getLogger(__name__)


@duty("starting queued agents", 5.0, wakes=True)
async def start_queued(ctx: Ctx) -> None:
    """Start queued agents while there are free slots; one that cannot be started leaves the queue."""
    if not await ctx.read(lambda tx: _startable(tx, ctx)):
        return
    for agent_uid in await ctx.write(lambda tx: _take_slots(tx, ctx)):
        try:
            await launch(ctx, agent_uid)
        except WorkbenchError as error:
            log.warning("agent %s: %s: %s", agent_uid, error.code, error.message)
        except Exception:  # the other queued agents still start
            log.exception("agent %s: its process could not be started", agent_uid)


def _startable(tx: Reader, ctx: Ctx) -> list[Row]:
    """The queued agents of this machine that may start now, in order; those of planners at their limit are skipped."""
    machine = ctx.local.machine.only
    busy = tx.all(SQL.busy, machine=machine)
    free = ctx.settings.max_agents_running - len(busy)
    shares = Counter(row["spawned_by"] for row in busy if row["spawned_by"])
    agents: list[Row] = []
    for row in tx.all(SQL.queue, machine=machine):
        if len(agents) >= free:
            break
        if row["spawned_by"] and shares[row["spawned_by"]] >= ctx.settings.max_agents_per_planner:
            continue
        shares[row["spawned_by"]] += 1
        agents.append(row)
    return agents


def take_slot(tx: Tx, ctx: Ctx, agent: str) -> bool:
    """Give a queued agent a slot; False if it has to wait in the queue."""
    if agent in {row["agent_id"] for row in _startable(tx, ctx)}:
        tx.run(SQL.starting, agent=agent)
        return True
    tx.emit("agent.queued", f"agent:{agent}")
    return False


def _take_slots(tx: Tx, ctx: Ctx) -> list[str]:
    agents = []
    for row in _startable(tx, ctx):
        if row["deleted_at"] is not None or row["registration_status"] not in (
            *access.MAY_ACT,
            Registration.PENDING,
        ):
            termination.give_up(tx, row["agent_id"], "it is no longer admitted")
        else:
            tx.run(SQL.starting, agent=row["agent_id"])
            agents.append(row["agent_id"])
    return agents
