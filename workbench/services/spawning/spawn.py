"""The operations that spawn and restart agents, at once or when a slot is free."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.model import Level, Registration, Role, SelfTools, Wire
from workbench.ops import Ctx, op
from workbench.ops.parameters import AgentId
from workbench.rules import access
from workbench.rules.profile import Profile
from workbench.services.agents.register import Registered, add_pending, allow_admitted
from workbench.services.agents.rows import agent_by_uid, require_agent
from workbench.services.definitions import changes
from workbench.services.processes import processes, termination
from workbench.services.processes.processes import ResourceLimits
from workbench.services.processes.sandbox import ELSEWHERE, Confinement, confinement_of, unused_paths
from workbench.services.processes.workplaces import told_installs
from workbench.services.spawning import definition as definitions
from workbench.services.spawning import elsewhere, newcomer, on_machine, provider_keys
from workbench.services.spawning import workplace as places
from workbench.services.spawning.definition import DefinitionTarget, Include, OwnTools
from workbench.services.spawning.launch import launch
from workbench.services.spawning.newcomer import Newcomer, NewcomerRequest
from workbench.services.spawning.queue import take_slot
from workbench.services.spawning.request import (
    SQL,
    DisplayName,
    Environment,
    Function,
    Limits,
    OnlyTask,
    OnMachine,
    OverMcp,
    ProfileName,
    SecretVariables,
    SpawnPersona,
    SpawnRequest,
    Tools,
    WorkplaceKeys,
    check_profile,
    environment_of,
)
from workbench.services.worktrees.places import told_pointers
from workbench.store.base import Reader, Row, Tx

SPAWN = "spawn"
"""The actor that admits an agent which the operator started: the start itself, not a later decision."""


class Spawned(Wire):
    """A spawned agent, which runs or is `queued`, and works once its registration is approved.

    `approval_id` is the approval that decides it, null if it is admitted; get_approval with wait_seconds waits for it.
    `unused`: what of its definition its profile does not use, and files that its worktree lacks. `opens`: what its
    workplace opens to its commands.
    """

    agent_id: str
    role: Role
    status: Registration
    approval_id: int | None
    state: Literal["running", "queued"]
    pid: int | None
    worktree: str | None
    log: str
    confinement: Confinement
    definition_id: str | None
    unused: list[str]
    models: list[str]
    opens: list[str] = []


@op(allow=Level.PLANNER, needs_server=True, command="spawn")
async def spawn_agent(
    ctx: Ctx,
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
    on: OnMachine = None,
    approve: Annotated[
        Literal["auto", "ask"],
        Field(description="auto: admit the operator's agent at once; a planner's always needs approval."),
    ] = "auto",
) -> Spawned:
    """Start a worker process with its own identity. It registers, waits for approval, then takes tasks.

    When no slot is free, it is queued. get_approval with wait_seconds waits for the decision on its registration.
    """
    if on is not None:
        there = SpawnRequest(profile, None, None, limits, False, False, on=on)
        stays: dict[str, Any] = {
            "assigned_worktree": assigned_worktree,
            "new_worktree": new_worktree,
            "environment": environment,
        }
        stays |= {"secret": secret, "function": function, "task_id": task_id, "mcp": mcp, "definition": definition}
        stays |= {"include": include, "self_tools": self_tools, "tools": tools, "workplace": workplace}
        program = await on_machine.check(ctx, there, stays | {"approve": approve == "ask"})
        return await ctx.local.repositories.shielded(_spawn_there(ctx, there, persona_id, name, program))
    keys, variables = places.checked_keys(ctx.caller, workplace)
    environment = {**variables, **environment}
    snapshot = await definitions.find(ctx, definition, include)
    path = ctx.definitions.display_path(snapshot.path) if snapshot else None
    request = SpawnRequest(
        profile, function, task_id, limits, mcp, bool(environment), path, tuple(include), tuple(secret), keys
    )
    choices = NewcomerRequest(persona_id, name, assigned_worktree, new_worktree, self_tools, tools)
    who = await newcomer.check(ctx, choices, request, environment, snapshot)
    return await ctx.local.repositories.shielded(_spawn(ctx, who, request, environment, approve))


async def _spawn(ctx: Ctx, who: Newcomer, request: SpawnRequest, environment: Environment, approve: str) -> Spawned:
    """Register an agent and start it."""
    registration, agent_uid, at_once = await _register(ctx, who, request, admitting_actor(ctx, approve))
    status = registration.status
    question = registration.approval_id if status is Registration.PENDING else None
    try:
        await asyncio.to_thread(processes.save_environment, ctx.settings, agent_uid, environment)
        pid = await launch(ctx, agent_uid) if at_once else None
    except (WorkbenchError, OSError) as error:
        reason = error.message if isinstance(error, WorkbenchError) else str(error)
        await ctx.write(lambda tx: termination.give_up(tx, agent_uid, reason))
        await asyncio.to_thread(processes.remove_environment, ctx.settings, agent_uid)
        raise
    agent = await ctx.read(lambda tx: require_agent(tx, registration.agent_id))
    installs = await asyncio.to_thread(told_installs, ctx.settings, who.workplace)
    spawned = await _describe(ctx, agent, status, pid, [*who.workplace.warnings, *installs, *who.unused], question)
    return spawned.model_copy(update={"opens": who.workplace.opened})


async def _spawn_there(
    ctx: Ctx, request: SpawnRequest, persona_id: str | None, name: str | None, profile: Profile
) -> Spawned:
    """Enlist an agent of another machine and start it there."""
    agent_uid = await elsewhere.enlist_for(ctx, str(request.on), name, persona_id, profile)
    at_once = await ctx.write(lambda tx: _queue(tx, ctx, agent_uid, request))
    pid = await launch(ctx, agent_uid) if at_once else None
    agent = await ctx.read(lambda tx: agent_by_uid(tx, agent_uid))
    spawned = await _describe(ctx, agent, Registration(agent["registration_status"]), pid, [])
    return spawned.model_copy(update={"confinement": ELSEWHERE})


@op(allow=Level.PLANNER, needs_server=True, destructive=True, command="restart")
async def restart_agent(ctx: Ctx, agent_id: AgentId) -> Spawned:
    """Restart an agent you spawned: end its process, if it runs, and start another with a new token.

    It takes its definition as that is now.
    """
    return await restart(ctx, agent_id)


async def restart(
    ctx: Ctx, agent_id: str, profile: str | None = None, also: Callable[[Tx], None] = lambda tx: None
) -> Spawned:
    """Restart an agent. What is wrong with it, or with the profile, ends no process.

    Args:
        profile: that it has from now on; None: its own.
        also: records that, once its process has ended.

    Raises:
        WorkbenchError: see `spawn_agent`.
    """

    def question(tx: Reader) -> tuple[Row, Row]:
        agent = require_agent(tx, agent_id)
        processes.require_authority(ctx.caller, agent)
        processes.require_spawn(tx, agent_id, agent["id"])
        if agent["registration_status"] in access.TURNED_AWAY:
            raise Conflict("WRONG_STATE", f"{agent_id} is {agent['registration_status']}. Spawn another.")
        spawn = tx.one(SQL.get, agent=agent["id"])
        assert spawn is not None, "it was there a moment ago"
        ctx.local.machine.require(spawn["machine"], agent_id)
        places.check_place(tx, ctx, agent["assigned_worktree"])
        return agent, spawn

    agent, spawn = await ctx.read(question)
    agent_uid: str = agent["id"]
    request, definition_id = SpawnRequest.of(spawn), agent["definition_id"]
    request = replace(request, profile=profile or request.profile)
    if request.on is not None:
        await on_machine.check(ctx, request, {})
        pid = await ctx.local.repositories.shielded(_restart(ctx, agent, also))
        described = await _describe(ctx, agent, Registration(agent["registration_status"]), pid, [])
        return described.model_copy(update={"confinement": ELSEWHERE})
    snapshot = await changes.current(ctx, definition_id, request.definition) if definition_id else None
    checked = await check_profile(ctx, request, snapshot)
    await environment_of(ctx, agent_uid, request)
    if snapshot is not None:  # what is wrong with it ends no process
        await definitions.setup(ctx, request, snapshot, SelfTools(agent["self_tools"]))
    confinement_of(ctx.settings)
    workplace = await places.resolve(ctx, places.levels_of(spawn, request, snapshot))
    await asyncio.to_thread(places.check_usable, ctx.settings, workplace)
    pid = await ctx.local.repositories.shielded(_restart(ctx, agent, also))
    status, unused = Registration(agent["registration_status"]), [*workplace.warnings, *checked.unused]
    return (await _describe(ctx, agent, status, pid, unused)).model_copy(update={"opens": workplace.opened})


async def _restart(ctx: Ctx, agent: Row, also: Callable[[Tx], None]) -> int | None:
    """End the process of an agent and start another; its pid, or None if the agent is queued."""
    agent_uid: str = agent["id"]
    await termination.end(ctx, agent_uid, "restart", keep=True)

    def change(tx: Tx) -> bool:
        also(tx)
        tx.run(SQL.queue_again, agent=agent_uid, now=tx.now)
        tx.emit("agent.restarted", f"agent:{agent_uid}", session=agent["session_id"])
        return take_slot(tx, ctx, agent_uid)

    return await launch(ctx, agent_uid) if await ctx.write(change) else None


def admitting_actor(ctx: Ctx, approve: str) -> str | None:
    """The actor that admits an agent at once, if the operator starts it and chose that.

    Raises: as `Allowlist.require_writable`.
    """
    if approve != "auto" or ctx.caller.level is not Level.OPERATOR:
        return None
    ctx.allowlist.require_writable()
    return SPAWN


async def _register(
    ctx: Ctx, who: Newcomer, request: SpawnRequest, admitted_by: str | None
) -> tuple[Registered, str, bool]:
    """Register an agent and queue it, in one transaction; also its internal id, and whether it got a slot."""

    def change(tx: Tx) -> tuple[Registered, str, bool]:
        token, parent = access.new_token("wba"), ctx.caller.agent
        origin: dict[str, Any] = {"parent": parent, "profile": request.profile, "admitted_by": admitted_by}
        registration = add_pending(tx, ctx, token=token, **origin, **who.registration)
        agent: str = require_agent(tx, registration.agent_id)["id"]
        return registration, agent, _queue(tx, ctx, agent, request)

    registration, agent_uid, at_once = await ctx.write(change)
    return allow_admitted(ctx, registration), agent_uid, at_once


def _queue(tx: Tx, ctx: Ctx, agent: str, request: SpawnRequest) -> bool:
    """Queue an agent that was registered; whether it got a slot.

    Raises:
        Unavailable: ``TOO_MANY_AGENTS``.
    """
    waiting = len(tx.all(SQL.queue, machine=ctx.local.machine.only))
    if waiting >= ctx.settings.max_agents_queued:
        raise Unavailable(
            "TOO_MANY_AGENTS",
            f"{waiting} agents are queued, as many as the setting max_agents_queued allows. "
            "Terminate one, or wait until one ends.",
        )
    stored = {"profile": request.profile, "request": request.as_json(), "parent": ctx.caller.agent}
    tx.run(SQL.add, stored, agent=agent, machine=ctx.local.machine.name, now=tx.now)
    return take_slot(tx, ctx, agent)


async def _describe(
    ctx: Ctx, agent: Row, status: Registration, pid: int | None, unused: Sequence[str], approval_id: int | None = None
) -> Spawned:
    return Spawned(
        agent_id=agent["assigned_agent_id"],
        role=agent["role"],
        status=status,
        approval_id=approval_id,
        state="queued" if pid is None else "running",
        pid=pid,
        worktree=agent["assigned_worktree"],
        log=str(processes.log_of(ctx, agent["id"])),
        confinement=confinement_of(ctx.settings),
        definition_id=agent["definition_id"],
        unused=[*unused_paths(ctx.settings), *unused, *await told_pointers(ctx, agent["assigned_worktree"])],
        models=await provider_keys.described(ctx, agent["id"]),
    )
