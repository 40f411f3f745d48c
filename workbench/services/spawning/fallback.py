"""Falling back: while its provider is limited or fails, an agent works with another profile, if the person allows that.

The setting `agent_fallback` names the profiles that may take each other's place. Alone: it restarts agents, which holds
know nothing of.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from workbench.errors import WorkbenchError
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.services.agents.rows import require_agent
from workbench.services.spawning.spawn import restart_agent
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
    agents = await ctx.read(lambda tx: tx.all(SQL.idle, now=tx.now))
    if not agents:
        return
    held = {row["profile"] for row in await ctx.read(lambda tx: tx.all(SQL.held_profiles, now=tx.now))}
    for agent in agents:
        if target := _target(agent, profiles, held):
            await _change(ctx, agent, target)


def _target(agent: Row, profiles: Collection[str], held: Collection[str]) -> str | None:
    """The profile that an agent is to work with from now on; None: it stays with its own."""
    own = agent["preferred"] or agent["profile"]
    if own not in profiles:
        return None
    if agent["preferred"] and own not in held:
        return str(own)
    if not agent["held"]:
        return None
    return next((name for name in profiles if name != agent["profile"] and name not in held), None)


async def _change(ctx: Ctx, agent: Row, profile: str) -> None:
    """Restart an agent with a profile; if that does not fit it, it stays as it is."""
    before, own = agent["profile"], agent["preferred"] or agent["profile"]
    away = None if profile == own else own

    def change(tx: Tx, to: str, preferred: str | None) -> None:
        tx.run(SQL.change, agent=agent["id"], profile=to)
        tx.run(SQL.prefer, agent=agent["id"], preferred=preferred)

    system = ctx.of(SYSTEM)
    await system.write(lambda tx: change(tx, profile, away))
    try:
        await restart_agent(system, agent["name"])
    except WorkbenchError as error:
        log.warning("agent %s cannot work with the profile %s: %s", agent["name"], profile, error.message)
        await system.write(lambda tx: change(tx, before, agent["preferred"]))
        return
    facts = {"profile": profile, "before": before}
    await system.write(
        lambda tx: tx.emit("agent.fell_back", f"agent:{require_agent(tx, agent['name'])['id']}", **facts)
    )
