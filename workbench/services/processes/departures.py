"""Agents that leave, by being terminated, revoked or deleted or by signing off: their tasks are released."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput, Conflict, Refused, Unavailable
from workbench.model import Level
from workbench.ops import SAID, Command, Ctx, Ok, RestRoute, op
from workbench.ops.parameters import AgentId
from workbench.services.agents.directory import AgentInfo, agent_of
from workbench.services.agents.rows import agent_by_uid, deactivate, on_agent_exit, require_agent, revoke
from workbench.services.processes.processes import remove_environment, require_authority
from workbench.services.processes.termination import end
from workbench.services.tasks import attempts
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)

Reason = Annotated[str, SAID, Field(max_length=1_000, description="Recorded in the agent's history.")]


@op(allow=Level.PLANNER, destructive=True, command=Command("terminate AGENT_ID", "Ended {agent_id}."))
async def terminate_agent(ctx: Ctx, agent_id: AgentId, reason: Reason = "") -> AgentInfo:
    """Terminate an agent's process and everything it started, and release its tasks."""
    row = await ctx.read(lambda tx: require_agent(tx, agent_id))
    require_authority(ctx.caller, row)
    if not await end(ctx, row["id"], reason):
        raise Conflict("NOT_RUNNING", f"{agent_id} has no running process.")
    return await ctx.read(lambda tx: agent_of(ctx, require_agent(tx, agent_id)))


@op(
    allow=Level.OPERATOR,
    destructive=True,
    command=Command("revoke AGENT_ID", "Revoked {agent_id}; its token no longer works.", also="agents revoke"),
    rest=RestRoute("POST", "/agents/{agent_id}/revoke"),
)
async def revoke_agent(ctx: Ctx, agent_id: AgentId, reason: Reason = "") -> AgentInfo:
    """Revoke an agent's admission: its token stops working at once, its process is ended, its tasks are released."""
    because = reason or "the agent was revoked"

    def change(tx: Tx) -> str:
        agent_uid = revoke(tx, agent_id, reason)
        attempts.unreserve(tx, agent_uid, because)
        return agent_uid

    agent_uid = await ctx.write(change)
    await asyncio.to_thread(remove_environment, ctx.settings, agent_uid)
    try:
        had_process = await end(ctx, agent_uid, reason)
    except Unavailable as error:
        if error.code != "PROCESS_SURVIVED":
            raise
        had_process = True  # its tasks are released when the process ends or their leases expire
    if not had_process:
        await ctx.write(lambda tx: attempts.release_all(tx, agent_uid, because))
    return await ctx.read(lambda tx: agent_of(ctx, require_agent(tx, agent_id)))


@op(allow=Level.READ, tool=False)
async def deregister_agent(
    ctx: Ctx,
    agent_id: Annotated[str | None, Field(description="Default: yourself; only the operator may name others.")] = None,
) -> Ok:
    """Sign off: release your tasks and become inactive until you reconnect."""
    if agent_id not in (None, ctx.caller.name) and ctx.caller.level is not Level.OPERATOR:
        raise Refused("FORBIDDEN", f"You are {ctx.caller.name}, not {agent_id}. Omit agent_id.")

    if agent_id is None and ctx.caller.agent is None:
        raise BadInput("AGENT_ONLY", "Give an agent_id: the operator is not an agent.")

    def change(tx: Tx) -> Ok:
        agent = require_agent(tx, agent_id or ctx.caller.name)
        attempts.release_all(tx, agent["id"], "the agent signed off")
        tx.emit("agent.deregistered", f"agent:{agent['id']}", session=agent["session_id"])
        deactivate(tx, agent["id"], "it signed off")
        return Ok()

    return await ctx.write(change)


@op(allow=Level.OPERATOR, destructive=True, command="agents delete", rest=RestRoute("DELETE", "/agents/{agent_id}"))
async def delete_agent(ctx: Ctx, agent_id: AgentId, reason: Reason = "") -> AgentInfo:
    """Delete an agent. Its history is kept, and restore_agent restores it."""

    def change(tx: Tx) -> AgentInfo:
        agent = require_agent(tx, agent_id)
        if agent["running"]:
            raise Conflict("STILL_RUNNING", f"The process of {agent_id} is running. Terminate it first.")
        tx.run(SQL.delete, id=agent["id"], now=tx.now)
        because = reason or "the agent was deleted"
        attempts.release_all(tx, agent["id"], because)
        attempts.unreserve(tx, agent["id"], because)
        on_agent_exit(tx, agent["id"], because)
        tx.emit("agent.deleted", f"agent:{agent['id']}", session=agent["session_id"], reason=reason)
        return agent_of(ctx, agent_by_uid(tx, agent["id"]))

    return await ctx.write(change)
