"""Changes to agents by the operator: grant, name, session, team and token; restoring deleted agents (spec 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict, WorkbenchError
from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, RestRoute, op
from workbench.ops.parameters import AgentId
from workbench.rules import access
from workbench.services.agents import grants
from workbench.services.agents.directory import AgentInfo, AgentList, agent_of
from workbench.services.agents.rows import agent_by_uid, require_agent
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
Changes = Annotated[dict[str, Any], Field(description=grants.CHOICES)]
Reason = Annotated[str, Field(max_length=1_000, description="Recorded in the agent's history.")]


class IssuedToken(Wire):
    """A new token, which is returned only this once. The agent's previous token no longer works."""

    agent_id: str
    token: str


@op(allow=Level.OPERATOR, command="grant", rest=RestRoute("PATCH", "/agents/{agent_id}", body="changes"))
async def update_agent(ctx: Ctx, agent_id: AgentId, changes: Changes, reason: Reason = "") -> AgentInfo:
    """Change an agent's grant, name, id, session or team. Takes effect with its next message."""
    return (await _change(ctx, [agent_id], changes, reason))[0]


@op(allow=Level.OPERATOR, command="move")
async def assign_agents(
    ctx: Ctx,
    agent_ids: Annotated[list[str], Field(min_length=1, max_length=1_000, description="Their ids; see list_agents.")],
    changes: Changes,
    reason: Reason = "",
) -> AgentList:
    """Change several agents at once, all or none: for example their session, team or persona."""
    return AgentList(agents=await _change(ctx, agent_ids, changes, reason))


@op(
    allow=Level.OPERATOR,
    command=Command("token AGENT_ID", prints="{token}", also="agents token"),
    rest=RestRoute("POST", "/agents/{agent_id}/token"),
)
async def issue_token(ctx: Ctx, agent_id: AgentId) -> IssuedToken:
    """Issue a new token to an agent. The previous token stops working, and its connections are closed."""
    token = access.new_token("wba")

    def change(tx: Tx) -> None:
        agent = require_agent(tx, agent_id)
        if agent["registration_status"] in access.TURNED_AWAY:
            raise Conflict("WRONG_STATE", f"{agent_id} is {agent['registration_status']}. It has to register again.")
        tx.run(SQL.set_token, id=agent["id"], token_hash=access.token_hash(token))
        tx.emit("agent.token_issued", f"agent:{agent['id']}", session=agent["session_id"])

    await ctx.write(change)
    return IssuedToken(agent_id=agent_id, token=token)


@op(allow=Level.OPERATOR, command="agents restore", rest=RestRoute("POST", "/agents/{agent_id}/restore"))
async def restore_agent(ctx: Ctx, agent_id: AgentId) -> AgentInfo:
    """Restore a deleted agent with its id, grant and token."""

    def change(tx: Tx) -> AgentInfo:
        row = tx.one(SQL.deleted_one, agent_id=agent_id)
        if row is None:
            require_agent(tx, agent_id)
            raise Conflict("WRONG_STATE", f"{agent_id} is not deleted; nothing was changed.")
        tx.run(SQL.restore, id=row["id"])
        tx.emit("agent.restored", f"agent:{row['id']}", session=row["session_id"])
        return agent_of(ctx, agent_by_uid(tx, row["id"]))

    return await ctx.write(change)


def restore_place(tx: Tx, agent: Row, place: Mapping[str, Any], undoes: int) -> None:
    """Move an agent back to a session and a team.

    Args:
        place: `session_id`, `team_id` or both.
        undoes: the event of the change that is undone.

    Raises:
        NotFound: ``SESSION_NOT_FOUND``, ``TEAM_NOT_FOUND``. Conflict: ``TEAM_ELSEWHERE``.
    """
    changed = grants.apply(tx, agent, grants.parse(place))
    values = {"changes": changed, "before": grants.before(agent, changed), "reason": "", "undoes": undoes}
    tx.emit("agent.updated", f"agent:{agent['id']}", session=changed.get("session_id", agent["session_id"]), **values)


async def _change(ctx: Ctx, agent_ids: list[str], changes: Mapping[str, Any], reason: str) -> list[AgentInfo]:
    grant = grants.parse(changes)
    if not grant.model_fields_set:
        raise grants.nothing_chosen()
    if grant.tools:
        await grants.require_tools(ctx, grant, await ctx.read(lambda tx: _shared_tools(tx, agent_ids)))

    def change(tx: Tx) -> list[AgentInfo]:
        return [_change_one(tx, ctx, require_agent(tx, agent_id), grant, reason) for agent_id in agent_ids]

    changed = await ctx.write(change)
    for before, after in zip(agent_ids, changed, strict=True):
        ctx.allowlist.rename(before, after.agent_id)
    return changed


def _shared_tools(tx: Reader, agent_ids: list[str]) -> set[str]:
    """The words for tools that all of these agents are granted."""
    granted = [set(json.loads(require_agent(tx, agent_id)["tools"])) for agent_id in agent_ids]
    return set.intersection(*granted) if granted else set()


def _change_one(tx: Tx, ctx: Ctx, agent: Row, grant: grants.Grant, reason: str) -> AgentInfo:
    if agent["registration_status"] in access.TURNED_AWAY:
        name, status = agent["assigned_agent_id"], agent["registration_status"]
        raise Conflict(
            "WRONG_STATE", f"{name} is {status}: a grant has no effect. It has to register again.", agent_id=name
        )
    try:
        changed = grants.apply(tx, agent, grant)
    except WorkbenchError as error:
        error.details.setdefault("agent_id", agent["assigned_agent_id"])
        raise
    if changed:
        session = changed.get("session_id", agent["session_id"])
        values = {"changes": changed, "before": grants.before(agent, changed), "reason": reason}
        tx.emit("agent.updated", f"agent:{agent['id']}", session=session, **values)
    return agent_of(ctx, agent_by_uid(tx, agent["id"]))
