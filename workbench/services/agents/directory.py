"""The agents that are visible to a caller (spec 1)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from workbench.model import SECOND, Access, GrantedAccess, Level, Micros, Registration, Role, SelfTools, Wire
from workbench.ops import Columns, Command, Ctx, RestRoute, op
from workbench.ops.parameters import AgentId
from workbench.rules import access
from workbench.rules.naming import like_pattern
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Deleted, Limit
from workbench.services.access import permissions
from workbench.services.agents.rows import no_agent
from workbench.services.resources.machine import ELSEWHERE
from workbench.services.spaces.sessions import require_session
from workbench.services.spaces.teams import require_team
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

Presence = Literal["active", "silent", "idle", "held", "waiting", "inactive", "terminated"]


class AgentInfo(Wire):
    """An agent, as others see it.

    `status` reflects connections only (spec 1), `presence` also heartbeats and the process: an active agent holds a
    task, a silent one too, and has given no sign of life for `stall_seconds`, an idle one could take one, a held one
    may not, a waiting one is connected and not admitted yet, an inactive one has left, is silent without a task or not
    admitted, and a terminated one's process has ended. Who holds a lease is active also while it sends nothing.
    `definition` is the name of its definition, and `definition_hash` the version that it was last started with.
    `self_tools`: what it may do with it; `definitions`: whether a planner may manage all of them. `tools`: what of the
    catalogue of tools it may call. `held_for`: why it claims nothing until `held_until`, or, if that is null, until a
    person answers. `machine`: where it runs, if that is another machine than this.
    """

    agent_id: str
    name: str
    registration_status: Registration
    status: Literal["connected", "disconnected"]
    presence: Presence
    persona_id: str | None
    role: Role
    tool: GrantedAccess
    access_level: Access
    definitions: bool
    tools: list[str]
    self_tools: SelfTools
    session_id: str | None
    session: str | None
    team_id: str | None
    team: str | None
    worktree: str | None
    parent: str | None
    definition: str | None
    definition_id: str | None
    definition_hash: str | None
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
    held_for: str | None
    held_until: Micros | None
    machine: str | None


class AgentPage(Wire):
    """Agents, oldest first. `next_cursor` is null on the last page."""

    SHOWN: ClassVar = Columns(
        "agents",
        "agent_id=agent name registration_status=registration presence persona_id=persona definition role tool "
        "access_level=access session team worktree machine parent=spawned_by",
        "No agent has registered yet.",
        sparse="definition machine",
    )

    agents: list[AgentInfo]
    total: int
    next_cursor: str | None


class AgentList(Wire):
    """All matching agents."""

    agents: list[AgentInfo]


@dataclass(frozen=True, slots=True)
class AgentFilter:
    """Filters for agents; `since` selects those that registered or were active after it (microseconds UTC)."""

    status: Registration | None = None
    session_id: str | None = None
    team_id: str | None = None
    search: str | None = None
    deleted: bool = False
    since: int | None = None


@op(
    allow=Level.READ,
    reads=True,
    command=Command("agents list"),
    rest=RestRoute("GET", "/agents", rows="agents"),
    refreshed_by="agent session team project hold clock",
)
async def list_agents(
    ctx: Ctx,
    status: Annotated[Registration | None, Field(description="Only agents in this state.")] = None,
    session_id: Annotated[str | None, Field(description="Only agents of this session (id or name).")] = None,
    team_id: Annotated[str | None, Field(description="Only agents of this team (id or name).")] = None,
    search: Annotated[str | None, Field(max_length=200, description="Part of an id, a name or a persona.")] = None,
    deleted: Deleted = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> AgentPage:
    """List the agents that are visible to you, oldest first."""

    filters = AgentFilter(status, session_id, team_id, search, deleted)
    return await ctx.read(lambda tx: page(tx, ctx, filters, limit, cursor))


def page(tx: Reader, ctx: Ctx, filters: AgentFilter, limit: int, cursor: str | None) -> AgentPage:
    """One page of the agents that are visible to the caller, oldest first.

    Raises:
        BadInput: ``BAD_CURSOR``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
        NotFound: ``SESSION_NOT_FOUND``, ``TEAM_NOT_FOUND``.
    """
    caller, session, team = ctx.caller, filters.session_id, filters.team_id
    permissions.check(tx, caller, "read", "agents")
    values = {
        **caller.scope,
        "status": filters.status,
        "session": require_session(tx, session, visible_to=caller)["id"] if session else None,
        "team": require_team(tx, team, visible_to=caller)["id"] if team else None,
        "search": like_pattern(filters.search),
        "since": filters.since,
        "deleted": int(filters.deleted),
    }
    rows = tx.all(SQL.list, values | paging.after(cursor), limit=limit + 1)
    total = tx.one(SQL.count, values)
    assert total is not None
    page_rows, following = paging.cut(rows, limit, "registered_at", "id")
    return AgentPage(agents=[agent_of(ctx, row) for row in page_rows], total=total["n"], next_cursor=following)


@op(allow=Level.READ, reads=True)
async def get_active_agents(
    ctx: Ctx, persona_id: Annotated[str | None, Field(description="Only agents of this persona.")] = None
) -> AgentList:
    """List the visible agents that are present: those with a task, and those that could take one."""

    def question(tx: Reader) -> list[AgentInfo]:
        permissions.check(tx, ctx.caller, "read", "agents")
        rows = tx.all(SQL.there, ctx.caller.scope, persona=persona_id.lower() if persona_id else None)
        return [agent_of(ctx, row) for row in rows]

    agents = await ctx.read(question)
    return AgentList(agents=[agent for agent in agents if agent.presence in ("active", "silent", "idle", "held")])


@op(allow=Level.READ, reads=True, tool=False, command="agent", rest=RestRoute("GET", "/agents/{agent_id}"))
async def get_agent(ctx: Ctx, agent_id: AgentId) -> AgentInfo:
    """Get an agent that is visible to you."""
    return await ctx.read(lambda tx: visible_agent(tx, ctx, agent_id))


def visible_agent(tx: Reader, ctx: Ctx, agent_id: str) -> AgentInfo:
    """An agent by its agent_id, if it is visible to the caller.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``.
    """
    permissions.check(tx, ctx.caller, "read", "agents")
    row = tx.one(SQL.visible, ctx.caller.scope, agent_id=agent_id)
    if row is None:
        raise no_agent(agent_id)
    return agent_of(ctx, row)


def agent_of(ctx: Ctx, row: Row) -> AgentInfo:
    """An agent from its row of `agents_seen`."""
    return AgentInfo(
        agent_id=row["assigned_agent_id"],
        name=row["name"],
        registration_status=row["registration_status"],
        status="connected" if row["connections"] else "disconnected",
        presence=_presence(row, ctx.store.now(), int(ctx.settings.silent_seconds * SECOND)),
        persona_id=row["persona_id"],
        role=row["role"],
        tool=row["tool"],
        access_level=row["access_level"],
        definitions=bool(row["may_define"]),
        tools=json.loads(row["tools"]),
        self_tools=row["self_tools"],
        session_id=row["session_id"],
        session=row["session"],
        team_id=row["team_id"],
        team=row["team"],
        worktree=row["assigned_worktree"],
        parent=row["parent"],
        definition=row["definition"],
        definition_id=row["definition_id"],
        definition_hash=row["definition_hash"],
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
        machine=_other_machine(ctx, row["machine"]),
        **_hold(row, ctx.store.now()),
    )


def _other_machine(ctx: Ctx, machine: str | None) -> str | None:
    """The machine of an agent, without a clone or not; None: this one, or it is not known."""
    if not machine or machine.startswith(ELSEWHERE):
        return (machine or "").removeprefix(ELSEWHERE) or None
    return None if ctx.local.machine.has(machine) else machine


def _hold(row: Row, now: int) -> dict[str, Any]:
    """Why an agent is held, and until when, unless that is over."""
    is_over = row["held_until"] is not None and row["held_until"] <= now
    return {name: None if is_over else row[name] for name in ("held_for", "held_until")}


def _presence(row: Row, now: int, silent: int) -> Presence:
    if row["running"] == 0 and not row["connections"]:
        return "terminated"
    # A lease that has not run out is proof of life: its holder may work for minutes without a request.
    # One that is admitted and not active has never been there, or has left.
    is_heard = row["registration_status"] == Registration.ACTIVE and row["last_heartbeat"] >= now - silent
    is_present = row["connections"] or row["running"] or row["holding"] or is_heard
    if row["registration_status"] == Registration.PENDING and row["connections"]:
        return "waiting"
    if not is_present or row["registration_status"] not in access.MAY_ACT:
        return "inactive"
    if row["holding"]:
        return "silent" if row["silent_since"] else "active"
    return "held" if _hold(row, now)["held_for"] else "idle"
