"""Workers that a person runs by hand: `enlist_worker` admits one and returns its configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.ops.parameters import PersonaId
from workbench.rules import access
from workbench.services.agents.register import Registered, add_pending, allow_admitted
from workbench.services.processes.processes import ResourceLimits
from workbench.services.processes.sandbox import confinement_of
from workbench.services.spawning import startup, workplace
from workbench.services.spawning.request import (
    DisplayName,
    Environment,
    Function,
    Limits,
    OnlyTask,
    OverMcp,
    ProfileName,
    SpawnRequest,
    check_environment,
    check_profile,
)
from workbench.services.spawning.spawn import approve_if_auto
from workbench.store.base import Tx


class Enlisted(Wire):
    """An admitted worker and its configuration as JSON, which contains the agent's token."""

    agent_id: str
    config: str


@op(allow=Level.OPERATOR, needs_server=True, tool=False)
async def enlist_worker(
    ctx: Ctx,
    persona_id: PersonaId,
    scratch: Annotated[str, Field(description="An empty directory for it alone; whoever runs the worker removes it.")],
    assigned_worktree: Annotated[str | None, Field(description="Its worktree; default: the task's.")] = None,
    new_worktree: Annotated[bool, Field(description="Create the worktree, with a free name if none is given.")] = False,
    name: DisplayName = None,
    environment: Environment = {},
    profile: ProfileName = "script",
    function: Function = None,
    task_id: OnlyTask = None,
    limits: Limits = ResourceLimits(),
    mcp: OverMcp = False,
) -> Enlisted:
    """Admit a worker that a person runs by hand (`workbench worker`), and get the configuration for its stdin."""
    check_environment(environment)
    request = SpawnRequest(profile, function, task_id, limits, mcp, bool(environment))
    capabilities = await check_profile(ctx, request)
    confinement = confinement_of(ctx.settings)
    worktree = await ctx.read(lambda tx: workplace.check(tx, ctx, persona_id, assigned_worktree, task_id, new_worktree))
    if new_worktree:
        worktree = await workplace.make_worktree(ctx, worktree, name or persona_id)
    token = access.new_token("wba")

    def change(tx: Tx) -> Registered:
        place = {"persona_id": persona_id, "worktree": worktree, "profile": profile}
        return add_pending(tx, ctx, name or persona_id, token, capabilities=capabilities, **place)

    made = allow_admitted(ctx, await ctx.write(change))
    agent_id, _ = await approve_if_auto(ctx, made, "auto")
    place = await ctx.read(lambda tx: workplace.place(tx, ctx, worktree))
    borrowed = await startup.borrowed(ctx, place)
    config = await asyncio.to_thread(
        startup.worker_config, ctx, request, place, borrowed, token, Path(scratch), environment, confinement
    )
    return Enlisted(agent_id=agent_id, config=config.as_json())
