"""Agents as processes: spawn them in their worktree, see them end, end them.

Only the planner that spawned an agent, or the operator, may terminate it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workbench.errors import BadInput, Conflict, NotFound, Refused, Unavailable, WorkbenchError
from workbench.model import Level, Micros, Registration, Wire
from workbench.ops import OPERATOR, Caller, Ctx, Ok, op
from workbench.process import ProcessRef
from workbench.rules import access
from workbench.services import agents, approvals, leases, registration
from workbench.services.agents import Agent
from workbench.services.registration import Registered
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

_KEPT_FOR_US = ("WORKBENCH_", "LD_", "GIT_", "PYTHON")

Environment = Annotated[
    dict[str, str],
    Field(max_length=100, description="Extra variables; not WORKBENCH_*, LD_*, GIT_* or PYTHON*."),
]


class Spawned(Wire):
    """A worker process that was started. It works once its registration is approved."""

    agent_id: str
    status: Registration
    approval_id: int
    pid: int
    worktree: str | None
    log: str


class Managed(Wire):
    """Agents that were spawned, oldest first."""

    agents: list[Agent]


class Process(Wire):
    """The operating-system process of a spawned agent."""

    agent_id: str
    pid: int
    profile: str
    running: bool
    exit_code: int | None
    spawned_at: Micros
    ended_at: Micros | None
    log: str


@op(allow=Level.PLANNER, needs_server=True)
async def spawn_agent(
    ctx: Ctx,
    persona_id: str,
    assigned_worktree: Annotated[
        str | None, Field(description="The worktree the agent works in and may not leave.")
    ] = None,
    name: Annotated[str | None, Field(min_length=1, max_length=100)] = None,
    environment: Environment = {},
    profile: Annotated[Literal["script"], Field(description="script: run each task's own command.")] = "script",
    mcp: Annotated[bool, Field(description="Talk to the server over MCP instead of plain HTTP.")] = False,
    approve: Annotated[
        Literal["auto", "ask"],
        Field(description="Whether the operator's spawn is admitted at once; a planner's always asks."),
    ] = "auto",
) -> Spawned:
    """Start a worker process with its own identity. It registers, waits for approval, then takes tasks."""
    _check_environment(environment)
    await _check_room(ctx)
    place = await ctx.read(lambda tx: _place(tx, ctx, assigned_worktree))
    made = await _register(ctx, name or persona_id, persona_id, assigned_worktree, profile)
    agent_id, status = made.agent_id, made.status
    if approve == "auto" and ctx.caller.level is Level.OPERATOR:
        decision = await approvals.approve(ctx, made.approval_id)
        agent_id, status = decision.outcome["agent_id"], Registration(decision.outcome["status"])
    ref, log = await _start(ctx, made, place, environment, profile, mcp)
    return Spawned(
        agent_id=agent_id,
        status=status,
        approval_id=made.approval_id,
        pid=ref.pid,
        worktree=assigned_worktree,
        log=str(log),
    )


@op(allow=Level.PLANNER, destructive=True)
async def terminate_agent(ctx: Ctx, agent_id: str, reason: Annotated[str, Field(max_length=1_000)] = "") -> Agent:
    """End an agent's process and everything it started; what it held can be claimed by others."""
    row = await ctx.read(lambda tx: registration.require_agent(tx, agent_id))
    _require_authority(ctx.caller, row)
    if not await end(ctx, row["id"], reason):
        raise Conflict("NOT_RUNNING", f"{agent_id} has no running process.")
    return await ctx.read(lambda tx: agents.agent_of(ctx, registration.require_agent(tx, agent_id)))


@op(allow=Level.OPERATOR, destructive=True)
async def revoke_agent(ctx: Ctx, agent_id: str, reason: Annotated[str, Field(max_length=1_000)] = "") -> Agent:
    """Take an agent's admission away: its token stops working at once, its process ends, its tasks are free."""
    internal = await ctx.write(lambda tx: registration.revoke(tx, agent_id, reason))
    if not await end(ctx, internal, reason):
        await ctx.write(lambda tx: leases.release_all(tx, internal, reason or "the agent was revoked"))
    return await ctx.read(lambda tx: agents.agent_of(ctx, registration.require_agent(tx, agent_id)))


@op(allow=Level.READ, tool=False)
async def deregister_agent(
    ctx: Ctx,
    agent_id: Annotated[str | None, Field(description="Yourself when null; a person may name anybody.")] = None,
) -> Ok:
    """Say goodbye: what you hold can be claimed by others, and you are inactive until you come back."""
    if agent_id not in (None, ctx.caller.name) and ctx.caller.level is not Level.OPERATOR:
        raise Refused("FORBIDDEN", f"You are {ctx.caller.name}, not {agent_id}. Leave agent_id out.")

    if agent_id is None and ctx.caller.agent is None:
        raise BadInput("AGENT_ONLY", "Name an agent: a person is not registered.")

    def change(tx: Tx) -> Ok:
        agent = registration.require_agent(tx, agent_id or ctx.caller.name)
        leases.release_all(tx, agent["id"], "the agent said goodbye")
        tx.emit("agent.deregistered", f"agent:{agent['id']}", session=agent["session_id"])
        registration.deactivate(tx, agent["id"], "it said goodbye")
        return Ok()

    return await ctx.write(change)


@op(allow=Level.PLANNER, reads=True)
async def get_managed_agents(ctx: Ctx) -> Managed:
    """The agents you spawned; for the operator, all that were spawned."""
    rows = await ctx.read(lambda tx: tx.all(SQL.managed, parent=ctx.caller.agent))
    return Managed(agents=[agents.agent_of(ctx, row) for row in rows])


@op(allow=Level.PLANNER, reads=True)
async def get_agent_process_info(ctx: Ctx, agent_id: str) -> Process:
    """The process of a spawned agent: pid, whether it runs, exit code, log file."""

    def question(tx: Reader) -> Row:
        agent = registration.require_agent(tx, agent_id)
        _require_authority(ctx.caller, agent)
        return _require_process(tx, agent_id, agent["id"])

    row = await ctx.read(question)
    return Process(
        agent_id=agent_id,
        pid=row["pid"],
        profile=row["profile"],
        running=row["ended_at"] is None,
        exit_code=row["exit_code"],
        spawned_at=row["spawned_at"],
        ended_at=row["ended_at"],
        log=row["log"],
    )


async def end(ctx: Ctx, agent: str, reason: str) -> bool:
    """End the process of an agent (internal id) if it has one; False when it has none running."""
    row = await ctx.read(lambda tx: tx.one(SQL.running_of, agent=agent))
    if row is None:
        return False
    ref = ProcessRef(row["pid"], row["started"])
    await asyncio.to_thread(ctx.processes.terminate, ref, ctx.settings.terminate_grace_seconds)
    await ctx.write(lambda tx: _ended(tx, ctx, row, "agent.terminated", reason))
    return True


async def end_all(ctx: Ctx, reason: str, worktree: str | None = None) -> None:
    """End every spawned process, or those of one worktree, at the same time."""
    rows = await ctx.read(lambda tx: tx.all(SQL.running, worktree=worktree))
    await asyncio.gather(*(end(ctx, row["agent_id"], reason) for row in rows))


async def reap(ctx: Ctx) -> None:
    """Note the processes that ended by themselves; what they held can be claimed by others."""
    rows = await ctx.read(lambda tx: tx.all(SQL.running, worktree=None))
    dead = [row for row in rows if not ctx.processes.alive(ProcessRef(row["pid"], row["started"]))]
    await asyncio.gather(*(_bury(ctx, row) for row in dead))


async def _bury(ctx: Ctx, row: Row) -> None:
    """A worker that was killed leaves the command it ran behind: nobody else may claim the task before that ended."""
    ref = ProcessRef(row["pid"], row["started"])
    await asyncio.to_thread(ctx.processes.terminate, ref, ctx.settings.terminate_grace_seconds)
    await ctx.write(lambda tx: _ended(tx, ctx, row, "agent.exited", ""))


def _ended(tx: Tx, ctx: Ctx, row: Row, kind: str, reason: str) -> None:
    code = ctx.processes.exit_code(ProcessRef(row["pid"], row["started"]))
    if not tx.run(SQL.ended, agent=row["agent_id"], exit_code=code, now=tx.now):
        return
    tx.emit(kind, f"agent:{row['agent_id']}", pid=row["pid"], exit_code=code, reason=reason)
    leases.release_all(tx, row["agent_id"], reason or "the agent's process ended")
    registration.gone(tx, row["agent_id"], reason or "the agent's process ended")


def _check_environment(environment: Mapping[str, str]) -> None:
    for name in environment:
        if name.upper().startswith(_KEPT_FOR_US) or not name.isidentifier():
            raise BadInput(
                "BAD_ENVIRONMENT",
                f"The variable {name!r} may not be set; names that begin with {', '.join(_KEPT_FOR_US)} are kept.",
            )


async def _check_room(ctx: Ctx) -> None:
    running = await ctx.read(lambda tx: tx.all(SQL.running, worktree=None))
    if len(running) >= ctx.settings.max_agents_running:
        raise Unavailable(
            "TOO_MANY_AGENTS",
            f"{len(running)} agents are running, as many as the setting max_agents_running allows. "
            "Terminate one, or wait until one ends.",
        )


def _place(tx: Reader, ctx: Ctx, worktree: str | None) -> Path:
    if worktree is None:
        return ctx.settings.project
    row = tx.one(SQL.worktree, name=access.check_worktree_name(worktree))
    if row is None or row["status"] != "active":
        raise NotFound("WORKTREE_NOT_FOUND", f"There is no active worktree {worktree!r}. Create it first.")
    if ctx.caller.level is not Level.OPERATOR and row["created_by"] != ctx.caller.name:
        raise Refused("FORBIDDEN", f"The worktree {worktree} belongs to {row['created_by']}.")
    return Path(row["path"])


async def _register(ctx: Ctx, name: str, persona_id: str, worktree: str | None, profile: str) -> Registered:
    def change(tx: Tx) -> Registered:
        return registration.add_pending(
            tx,
            ctx,
            name,
            access.new_token("wba"),
            capabilities={},
            persona_id=persona_id,
            worktree=worktree,
            parent=ctx.caller.agent,
            profile=profile,
        )

    return registration.entered(ctx, await ctx.write(change))


async def _start(
    ctx: Ctx, made: Registered, place: Path, environment: Mapping[str, str], profile: str, mcp: bool
) -> tuple[ProcessRef, Path]:
    assert ctx.server is not None
    internal = made.agent_id.removeprefix("pending_")
    log = ctx.settings.logs / f"{internal}.log"
    orders = {
        "url": ctx.server.url,
        "mcp_url": ctx.server.mcp_url if mcp else None,
        "token": made.token,
        "commit": place != ctx.settings.project,
        "heartbeat_seconds": ctx.settings.heartbeat_seconds,
    }
    try:
        ref = await asyncio.to_thread(
            ctx.processes.start,
            [sys.executable, "-P", "-m", "workbench.worker"],
            cwd=place,
            env=_environment(ctx, ctx.server.url, environment),
            stdin_text=json.dumps(orders),
            log=log,
        )
    except WorkbenchError as error:
        reason = error.message
        await ctx.write(lambda tx: registration.gone(tx, internal, reason))
        raise
    values = {"agent": internal, "pid": ref.pid, "started": ref.started, "profile": profile, "log": str(log)}

    def change(tx: Tx) -> None:
        tx.run(SQL.add, values | {"now": tx.now})
        tx.emit("agent.spawned", f"agent:{internal}", pid=ref.pid, profile=profile)

    await ctx.write(change)
    return ref, log


def _environment(ctx: Ctx, url: str, extra: Mapping[str, str]) -> dict[str, str]:
    """The person's environment without what could steer the worker, its interpreter first in PATH."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_KEPT_FOR_US)}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    ours = {"PATH": path, "WORKBENCH_PROJECT": str(ctx.settings.project), "WORKBENCH_URL": url}
    return kept | dict(extra) | ours


def _require_authority(caller: Caller, agent: Row) -> None:
    if caller.level < OPERATOR.level and agent["parent_agent_id"] != caller.agent:
        raise Refused(
            "FORBIDDEN", f"Only the planner that spawned {agent['assigned_agent_id']}, or the operator, may do this."
        )


def _require_process(tx: Reader, agent_id: str, internal: str) -> Row:
    row = tx.one(SQL.of_agent, agent=internal)
    if row is None:
        raise NotFound("PROCESS_NOT_FOUND", f"{agent_id} was not spawned here; it has no process.")
    return row
