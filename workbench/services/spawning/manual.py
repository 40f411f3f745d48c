"""Workers that a person runs by hand: `enlist_worker` admits one and returns its configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.rules import access
from workbench.services.agents.register import add_pending, allow_admitted
from workbench.services.agents.rows import require_agent
from workbench.services.processes.processes import ResourceLimits
from workbench.services.processes.sandbox import confinement_of
from workbench.services.processes.workplaces import choose_gpu
from workbench.services.resources import leases
from workbench.services.spawning import definition as definitions
from workbench.services.spawning import newcomer, startup
from workbench.services.spawning import workplace as places
from workbench.services.spawning.definition import DefinitionTarget, Include, OwnTools
from workbench.services.spawning.newcomer import NewcomerRequest
from workbench.services.spawning.request import (
    DisplayName,
    Environment,
    Function,
    Limits,
    OnlyTask,
    OverMcp,
    ProfileName,
    SecretVariables,
    SpawnPersona,
    SpawnRequest,
    Tools,
    WorkplaceKeys,
)
from workbench.services.spawning.spawn import admitting_actor
from workbench.services.spawning.startup import WorkerStart


class Enlisted(Wire):
    """An admitted worker and its configuration as JSON, which contains the agent's token and its definition's secrets.

    `unused` says what of its definition its profile does not use.
    """

    agent_id: str
    config: str
    unused: list[str]


@op(allow=Level.OPERATOR, needs_server=True, tool=False, command="worker")
async def enlist_worker(
    ctx: Ctx,
    scratch: Annotated[str, Field(description="An empty directory for it alone; whoever runs the worker removes it.")],
    persona_id: SpawnPersona = None,
    assigned_worktree: Annotated[str | None, Field(description="Its worktree; default: the task's.")] = None,
    new_worktree: Annotated[bool, Field(description="Create the worktree, with a free name if none is given.")] = False,
    name: DisplayName = None,
    environment: Environment = {},
    secret: SecretVariables = [],
    profile: ProfileName = "script",
    function: Function = None,
    task_id: OnlyTask = None,
    limits: Limits = ResourceLimits(),
    mcp: OverMcp = False,
    definition: DefinitionTarget = None,
    include: Include = [],
    self_tools: OwnTools = None,
    tools: Tools = [],
    workplace: WorkplaceKeys = {},
) -> Enlisted:
    """Admit a worker that a person runs by hand (`workbench worker`), and get the configuration for its stdin."""
    keys, variables = places.checked_keys(ctx.caller, workplace)
    environment = {**variables, **environment}
    snapshot = await definitions.find(ctx, definition, include)
    path = ctx.definitions.display_path(snapshot.path) if snapshot else None
    request = SpawnRequest(
        profile, function, task_id, limits, mcp, bool(environment), path, tuple(include), tuple(secret), keys
    )
    choices = NewcomerRequest(persona_id, name, assigned_worktree, new_worktree, self_tools, tools)
    who = await newcomer.check(ctx, choices, request, environment, snapshot)
    own = who.definition
    setup = await definitions.setup(ctx, request, snapshot, own.self_tools) if snapshot and own else None
    token = access.new_token("wba")
    origin: dict[str, Any] = {"profile": profile, "admitted_by": admitting_actor(ctx, "auto")}
    registering = ctx.write(lambda tx: add_pending(tx, ctx, token=token, **origin, **who.registration))
    agent_id = allow_admitted(ctx, await registering).agent_id
    if setup is not None:
        await ctx.write(lambda tx: definitions.record(tx, require_agent(tx, agent_id)["id"], setup))
    place = await ctx.read(lambda tx: places.place(tx, ctx, who.worktree))
    repository = await startup.repository_of(ctx, place)
    environment = await startup.variables(ctx, who.workplace) | environment
    taken = await ctx.read(lambda tx: leases.taken_gpus(tx, ctx.local.machine.only, ""))
    gpu = await asyncio.to_thread(choose_gpu, who.workplace, taken)
    confinement = confinement_of(ctx.settings)
    included = await startup.included(ctx, repository, who.workplace)
    start = WorkerStart(token, Path(scratch), environment, confinement, setup, who.workplace, gpu, (), included)
    config = await asyncio.to_thread(startup.worker_config, ctx, request, place, repository, start)
    account = await asyncio.to_thread(startup.account_of, config)
    await ctx.write(lambda tx: startup.enlist(tx, require_agent(tx, agent_id)["id"], config, account))
    return Enlisted(agent_id=agent_id, config=config.as_json(), unused=[*who.workplace.warnings, *who.unused])
