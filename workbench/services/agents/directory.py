"""Agents as a person manages them: who there is, what they may, and how they come and go (spec 1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import Conflict, WorkbenchError
from workbench.model import SECOND, Access, Level, Micros, Registration, Role, Tool, Wire
from workbench.ops import Ctx, op
from workbench.rules import access
from workbench.rules.search import part
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Deleted, Limit
from workbench.services.access import permissions
from workbench.services.agents import grants, registration
from workbench.services.spaces.sessions import require_session
from workbench.services.spaces.teams import require_team
from workbench.services.tasks import attempts
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

Presence = Literal["active", "idle", "offline", "terminated"]
Changes = Annotated[dict[str, Any], Field(description=grants.CHOICES)]
Reason = Annotated[str, Field(max_length=1_000)]


class Agent(Wire):
    """A participant, as others see it.

    `status` tells of connections alone (spec 1); `presence` also of heartbeats and the process: active
    holds a task, idle could take one, offline is not heard of, terminated had a process that ended.
    """

    agent_id: str
    name: str
    registration_status: Registration
    status: Literal["connected", "disconnected"]
    presence: Presence
    persona_id: str | None
    role: Role
    tool: Tool
    access_level: Access
    session_id: str | None
    session: str | None
    team_id: str | None
    team: str | None
    worktree: str | None
    parent: str | None
    capabilities: dict[str, Any]
    client: str | None
    address: str | None
    connection_id: str | None
    connections: int
    id_only: bool
    expires_at: Micros | None
    registered_at: Micros
    last_heartbeat: Micros
    deleted_at: Micros | None


class Agents(Wire):
    """Agents, oldest first; read on with `next_cursor`, which is null at the end."""

    agents: list[Agent]
    total: int
    next_cursor: str | None


class Some(Wire):
    """Some agents, all of them."""

    agents: list[Agent]


class Issued(Wire):
    """A fresh token; it is told this once, and the one before no longer works."""

    agent_id: str
    token: str


@op(allow=Level.READ, reads=True)
async def list_agents(
    ctx: Ctx,
    status: Annotated[Registration | None, Field(description="Only agents in this state.")] = None,
    session_id: Annotated[str | None, Field(description="Only agents of this session (id or name).")] = None,
    team_id: Annotated[str | None, Field(description="Only agents of this team (id or name).")] = None,
    search: Annotated[str | None, Field(max_length=200, description="Part of an id, a name or a persona.")] = None,
    deleted: Deleted = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Agents:
    """The agents you may see, oldest first."""

    def question(tx: Reader) -> Agents:
        permissions.check(tx, ctx.caller, "read", "agents")
        wanted = {
            **ctx.caller.scope,
            "status": status,
            "session": require_session(tx, session_id, seen_by=ctx.caller)["id"] if session_id else None,
            "team": require_team(tx, team_id, seen_by=ctx.caller)["id"] if team_id else None,
            "search": part(search),
            "deleted": int(deleted),
        }
        rows = tx.all(SQL.list, wanted | paging.after(cursor), limit=limit + 1)
        total = tx.one(SQL.count, wanted)
        assert total is not None
        shown, following = paging.cut(rows, limit, "registered_at", "id")
        return Agents(agents=[agent_of(ctx, row) for row in shown], total=total["n"], next_cursor=following)

    return await ctx.read(question)


@op(allow=Level.READ, reads=True)
async def get_active_agents(
    ctx: Ctx, persona_id: Annotated[str | None, Field(description="Only agents of this persona.")] = None
) -> Some:
    """The agents you may see that are there now: those with a task, and those that could take one."""

    def question(tx: Reader) -> list[Agent]:
        permissions.check(tx, ctx.caller, "read", "agents")
        rows = tx.all(SQL.there, ctx.caller.scope, persona=persona_id.lower() if persona_id else None)
        return [agent_of(ctx, row) for row in rows]

    found = await ctx.read(question)
    return Some(agents=[agent for agent in found if agent.presence in ("active", "idle")])


@op(allow=Level.READ, reads=True, tool=False)
async def get_agent(ctx: Ctx, agent_id: str) -> Agent:
    """One agent, if you may see it."""
    return await ctx.read(lambda tx: seen(tx, ctx, agent_id))


@op(allow=Level.OPERATOR)
async def update_agent(ctx: Ctx, agent_id: str, changes: Changes) -> Agent:
    """Change what an agent was granted, its name, its id or its place. It holds from the next message on."""
    return (await _change(ctx, [agent_id], changes))[0]


@op(allow=Level.OPERATOR)
async def assign_agents(
    ctx: Ctx, agent_ids: Annotated[list[str], Field(min_length=1, max_length=1_000)], changes: Changes
) -> Some:
    """Change many agents at once, all or none: put them into a session or a team, give them a persona."""
    return Some(agents=await _change(ctx, agent_ids, changes))


@op(allow=Level.OPERATOR)
async def issue_token(ctx: Ctx, agent_id: str) -> Issued:
    """Give an agent a new token. The one before stops working, and its connections end."""
    token = access.new_token("wba")

    def change(tx: Tx) -> None:
        agent = registration.require_agent(tx, agent_id)
        if agent["registration_status"] in access.TURNED_AWAY:
            raise Conflict("WRONG_STATE", f"{agent_id} is {agent['registration_status']}. Let it register anew.")
        tx.run(SQL.set_token, id=agent["id"], token_hash=access.token_hash(token))
        tx.emit("agent.token_issued", f"agent:{agent['id']}", session=agent["session_id"])

    await ctx.write(change)
    return Issued(agent_id=agent_id, token=token)


@op(allow=Level.OPERATOR, destructive=True)
async def delete_agent(ctx: Ctx, agent_id: str, reason: Reason = "") -> Agent:
    """Remove an agent from every list; its history stays, and restore_agent brings it back."""

    def change(tx: Tx) -> Agent:
        agent = registration.require_agent(tx, agent_id)
        if agent["running"]:
            raise Conflict("STILL_RUNNING", f"The process of {agent_id} is running. Terminate it first.")
        tx.run(SQL.set_deleted, id=agent["id"], at=tx.now)
        because = reason or "the agent was deleted"
        attempts.release_all(tx, agent["id"], because)
        attempts.unreserve(tx, agent["id"], because)
        registration.gone(tx, agent["id"], because)
        tx.emit("agent.deleted", f"agent:{agent['id']}", session=agent["session_id"], reason=reason)
        return agent_of(ctx, _by_internal(tx, agent["id"]))

    return await ctx.write(change)


@op(allow=Level.OPERATOR)
async def restore_agent(ctx: Ctx, agent_id: str) -> Agent:
    """Bring a deleted agent back, as it was."""

    def change(tx: Tx) -> Agent:
        row = tx.one(SQL.deleted_one, agent_id=agent_id)
        if row is None:
            raise registration.no_agent(agent_id)
        tx.run(SQL.set_deleted, id=row["id"], at=None)
        tx.emit("agent.restored", f"agent:{row['id']}", session=row["session_id"])
        return agent_of(ctx, _by_internal(tx, row["id"]))

    return await ctx.write(change)


async def _change(ctx: Ctx, agent_ids: list[str], changes: Mapping[str, Any]) -> list[Agent]:
    grant = grants.parse(changes)
    if not grant.model_fields_set:
        raise grants.nothing_chosen()

    def change(tx: Tx) -> list[Agent]:
        return [_change_one(tx, ctx, registration.require_agent(tx, one), grant) for one in agent_ids]

    changed = await ctx.write(change)
    for before, after in zip(agent_ids, changed, strict=True):
        ctx.allowlist.rename(before, after.agent_id)
    return changed


def _change_one(tx: Tx, ctx: Ctx, agent: Row, grant: grants.Grant) -> Agent:
    try:
        changed = grants.apply(tx, agent, grant)
    except WorkbenchError as error:
        error.details.setdefault("agent_id", agent["assigned_agent_id"])
        raise
    if changed:
        session = changed.get("session_id", agent["session_id"])
        tx.emit("agent.updated", f"agent:{agent['id']}", session=session, changes=changed)
    return agent_of(ctx, _by_internal(tx, agent["id"]))


def _by_internal(tx: Reader, internal: str) -> Row:
    row = tx.one(SQL.one, id=internal)
    assert row is not None, "the row was there a moment ago"
    return row


def seen(tx: Reader, ctx: Ctx, agent_id: str) -> Agent:
    """An agent by the id seen outside, if the caller may see it.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``.
    """
    permissions.check(tx, ctx.caller, "read", "agents")
    row = tx.one(SQL.seen, ctx.caller.scope, agent_id=agent_id)
    if row is None:
        raise registration.no_agent(agent_id)
    return agent_of(ctx, row)


def agent_of(ctx: Ctx, row: Row) -> Agent:
    """An agent from its row of `agents_seen`."""
    return Agent(
        agent_id=row["assigned_agent_id"],
        name=row["name"],
        registration_status=row["registration_status"],
        status="connected" if row["connections"] else "disconnected",
        presence=_presence(row, ctx.store.now() - int(ctx.settings.silent_seconds * SECOND)),
        persona_id=row["persona_id"],
        role=row["role"],
        tool=row["tool"],
        access_level=row["access_level"],
        session_id=row["session_id"],
        session=row["session"],
        team_id=row["team_id"],
        team=row["team"],
        worktree=row["assigned_worktree"],
        parent=row["parent"],
        capabilities=json.loads(row["capabilities"]),
        client=row["client"],
        address=row["address"],
        connection_id=row["connection_id"],
        connections=row["connections"],
        id_only=bool(row["id_only"]),
        expires_at=row["expires_at"],
        registered_at=row["registered_at"],
        last_heartbeat=row["last_heartbeat"],
        deleted_at=row["deleted_at"],
    )


def _presence(row: Row, heard_since: int) -> Presence:
    if row["running"] == 0 and not row["connections"]:
        return "terminated"
    heard = row["connections"] or row["running"] or row["last_heartbeat"] >= heard_since
    if not heard or row["registration_status"] not in access.MAY_ACT:
        return "offline"
    return "active" if row["holding"] else "idle"
