"""Falling back: while its provider is limited or fails, an agent works with another profile, if the person allows that.

The setting `agent_fallback` names the profiles that may take each other's place. Alone: it restarts agents, which holds
know nothing of.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.services.spawning.spawn import restart
from workbench.store.base import Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

log = logging.getLogger(__name__)


def allowed(setting: str) -> list[str]:
    """The profiles that the setting names, in order."""
    return [name.strip() for name in setting.split(",") if name.strip()]


@duty("falling back to other profiles", 2.0)
async def fall_back(ctx: Ctx) -> None:
    """Restart agents that are held with another profile, and with their own once that is held no more."""
    profiles = allowed(ctx.settings.agent_fallback)
    if not profiles:
        return
    agents = await ctx.read(lambda tx: tx.all(SQL.idle, now=tx.now, machine=ctx.local.machine.only))
    if not agents:
        return
    held = {row["profile"] for row in await ctx.read(lambda tx: tx.all(SQL.held_profiles, now=tx.now))}
    for agent in agents:
        for target in _targets(agent, profiles, held):
            if await _change(ctx, agent, target):
                break


def _targets(agent: Row, profiles: Collection[str], held: Collection[str]) -> list[str]:
    """The profiles that an agent could work with from now on, the best first; none: it stays with its own."""
    own = agent["preferred"] or agent["profile"]
    if own not in profiles:
        return []
    if agent["preferred"] and own not in held:
        return [str(own)]
    if not agent["held"]:
        return []
    return [name for name in profiles if name != agent["profile"] and name not in held]


async def _change(ctx: Ctx, agent: Row, profile: str) -> bool:
    """Restart an agent with a profile; if that does not fit it, or fails, it stays as it is. Whether it was changed."""
    before, own = agent["profile"], agent["preferred"] or agent["profile"]

    def change(tx: Tx, to: str) -> None:
        tx.run(SQL.change, agent=agent["id"], profile=to)
        tx.run(SQL.prefer, agent=agent["id"], preferred=None if to == own else own)
        if to == profile:
            tx.emit("agent.fell_back", f"agent:{agent['id']}", profile=profile, before=before)

    system = ctx.of(SYSTEM)
    try:
        await restart(system, agent["name"], profile, lambda tx: change(tx, profile))
    except Exception as error:  # the others fall back all the same
        log.warning("agent %s cannot work with the profile %s: %s", agent["name"], profile, error)
        if await ctx.read(lambda tx: tx.one(SQL.profile, agent=agent["id"], profile=profile)):
            await restart(system, agent["name"], before, lambda tx: change(tx, before))
        return False
    return True
