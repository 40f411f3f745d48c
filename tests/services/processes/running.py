"""Agents as real processes: spawning them, giving them tasks, and asking about both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.conftest import Admitted, Served
from workbench.app import Workbench
from workbench.shells.serve import Servers
from workbench.state.settings import Settings


async def spawn(served: Served, by: Admitted | None = None, **more: Any) -> dict[str, Any]:
    """Spawn an agent, as the operator or as a planner."""
    arguments = {"persona_id": "implementer", **more}
    if by is None:
        return await served.workbench.call("spawn_agent", **arguments)
    return await served.workbench.dispatch(by.caller, "spawn_agent", arguments)


async def process(served: Served, agent_id: str) -> dict[str, Any]:
    """The process of an agent."""
    return await served.workbench.call("get_agent_process_info", agent_id=agent_id)


async def over(served: Served, agent_id: str) -> dict[str, Any]:
    """The process of an agent, once it has been noted that it ended."""
    while (details := await process(served, agent_id))["running"]:
        await asyncio.sleep(0.02)
    return details


async def agent(served: Served, agent_id: str) -> dict[str, Any]:
    """An agent by its id."""
    agents = (await served.workbench.call("list_agents"))["agents"]
    return next(a for a in agents if a["agent_id"] == agent_id)


@asynccontextmanager
async def crowded(settings: Settings, **limits: Any) -> AsyncIterator[Served]:
    """A served project in which few agents may run."""
    async with serving(settings.model_copy(update=limits)) as served:
        yield served


@asynccontextmanager
async def serving(settings: Settings, *, end_workers: bool = True) -> AsyncIterator[Served]:
    """A served project, on a port of its own."""
    async with Workbench.open(settings) as workbench, Servers(workbench, end_workers=end_workers) as servers:
        yield Served(workbench, await servers.start(0), servers)


async def confinement(served: Served) -> dict[str, Any]:
    """The summary of how far this machine confines workers."""
    told = await served.workbench.call("get_confinement")
    return {"enforced": bool(told["enforced"]), "missing": told["missing"]}
