"""Agents come, wait and are admitted (spec 1): register, the pending desk, tokens, grants.

Registering returns a secret once; only its hash is kept. It opens nothing until a person has admitted the agent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Conflict, NotFound, Unauthenticated, Unavailable
from workbench.model import Access, Level, Micros, Registration, Role, Tool, Wire, uuid7
from workbench.ops import Caller, Ctx, Ok, op
from workbench.rules import access
from workbench.services import approvals
from workbench.services.approvals import Approval
from workbench.services.personas import require_persona
from workbench.store.base import Reader, Row, Store, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

AgentName = Annotated[str, Field(min_length=1, max_length=100, description="What people will call this agent.")]
Capabilities = Annotated[dict[str, Any], Field(description="What the agent can do; free-form, at most 10 kB of JSON.")]
WaitSeconds = Annotated[float, Field(ge=0, le=30, description="Wait this long for news before answering.")]


class Registered(Wire):
    """A registration that waits; the token is told this once and never again."""

    agent_id: str
    status: Registration
    token: str
    approval_id: int
    message: str


class RegistrationState(Wire):
    """How a registration stands."""

    agent_id: str
    status: Registration
    tool: Tool
    role: Role
    persona_id: str | None
    reason: str | None
    message: str


class Agent(Wire):
    """A participant, as others see it."""

    agent_id: str
    name: str
    registration_status: Registration
    persona_id: str | None
    role: Role
    tool: Tool
    worktree: str | None
    parent: str | None
    capabilities: dict[str, Any]
    registered_at: Micros
    last_heartbeat: Micros


class Agents(Wire):
    """Agents, oldest first."""

    agents: list[Agent]


class Identity(Wire):
    """Who the caller is, as the server sees it."""

    agent_id: str
    level: str
    persona_id: str | None
    worktree: str | None


async def identify(store: Store, token: str) -> Caller:
    """The caller an agent's token belongs to.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``.
    """
    hashed = access.token_hash(token)
    return await store.look(lambda tx: _caller(tx, tx.one(SQL.by_token, token_hash=hashed)))


async def renewed(store: Store, caller: Caller) -> Caller:
    """An agent as it stands now: grants change, and tools are disabled, while it is connected.

    Raises:
        Unauthenticated: ``INVALID_TOKEN``.
    """
    if caller.agent is None:
        return caller
    now = await store.look(lambda tx: _caller(tx, tx.one(SQL.as_caller, id=caller.agent)))
    return replace(now, address=caller.address, client=caller.client)


def _caller(tx: Reader, row: Row | None) -> Caller:
    if row is None or row["registration_status"] == Registration.REVOKED or row["deleted_at"] is not None:
        raise Unauthenticated("INVALID_TOKEN", "The token is unknown or was revoked. Register again.")
    tool = Tool.READ if row["tool"] == Tool.READ or not row["may_write"] else Tool.WRITE
    barred = None
    if row["expires_at"] is not None and row["expires_at"] <= tx.now:
        barred = "GRANT_EXPIRED"
    elif tool is Tool.READ and not row["may_read"]:
        barred = "TOOL_DISABLED"
    level = access.level_of(Registration(row["registration_status"]), tool, Role(row["role"]))
    return Caller(
        Level.ANONYMOUS if barred else level,
        row["assigned_agent_id"],
        row["id"],
        row["persona_id"],
        row["assigned_worktree"],
        row["session_id"],
        row["team_id"],
        Access(row["access_level"]),
        tool,
        barred,
    )


@op(allow=Level.ANONYMOUS, reads=True, tool=False)
async def ping(ctx: Ctx) -> Ok:
    """Answer that the server is there."""
    return Ok()


@op(allow=Level.ANONYMOUS)
async def register(
    ctx: Ctx,
    name: AgentName,
    capabilities: Capabilities = {},
    persona_id: Annotated[str | None, Field(description="The kind of work wanted: implementer, reviewer, …")] = None,
) -> Registered:
    """Register as a new agent. A person decides; keep the token, it is shown only now."""
    _check_capabilities(capabilities)
    token = access.new_token("wba")

    def change(tx: Tx) -> Registered:
        return add_pending(tx, ctx, name, token, capabilities=capabilities, persona_id=persona_id)

    return await ctx.write(change)


def add_pending(
    tx: Tx,
    ctx: Ctx,
    name: str,
    token: str,
    *,
    capabilities: Mapping[str, Any],
    persona_id: str | None,
    worktree: str | None = None,
    parent: str | None = None,
    profile: str | None = None,
) -> Registered:
    """Add an agent that waits for a decision, and the question about it, in one transaction.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``. Unavailable: ``TOO_MANY_PENDING``.
    """
    persona = require_persona(tx, persona_id) if persona_id else None
    persona_id, role = (persona.id, persona.role) if persona else (None, Role.WORKER)
    waiting = tx.one(SQL.count_pending)
    if waiting and waiting["n"] >= ctx.settings.max_pending_agents:
        raise Unavailable("TOO_MANY_PENDING", "Too many agents wait for a decision. Try again later.")
    internal = str(uuid7(tx.now))
    agent_id = f"pending_{internal}"
    tx.run(
        SQL.add,
        id=internal,
        agent_id=agent_id,
        name=name,
        token_hash=access.token_hash(token),
        persona_id=persona_id,
        role=role,
        capabilities=json.dumps(capabilities),
        worktree=worktree,
        parent=parent,
        now=tx.now,
    )
    tx.emit("agent.registered", f"agent:{internal}", agent_id=agent_id, name=name, persona_id=persona_id)
    payload = {
        "agent_id": agent_id,
        "name": name,
        "persona_id": persona_id,
        "role": role,
        "capabilities": capabilities,
        "worktree": worktree,
        "profile": profile,
        "spawned_by": tx.actor if profile else None,
        "suggested_id": _free_id(tx, name),
    }
    return Registered(
        agent_id=agent_id,
        status=Registration.PENDING,
        token=token,
        approval_id=approvals.ask(tx, "registration", f"agent:{internal}", payload),
        message="Registration successful. Waiting for human assignment of permanent agent_id.",
    )


@op(allow=Level.ANONYMOUS, reads=True)
async def registration_status(
    ctx: Ctx,
    token: Annotated[str | None, Field(description="Your token, if the request does not carry it.")] = None,
    wait_seconds: WaitSeconds = 0,
) -> RegistrationState:
    """Whether you are admitted yet; waits up to wait_seconds for the decision."""
    caller = await identify(ctx.store, token) if token else ctx.caller
    if caller.agent is None:
        raise Unauthenticated("TOKEN_REQUIRED", "Send the token that register returned.")
    subject = f"agent:{caller.agent}"
    deadline = asyncio.get_running_loop().time() + wait_seconds
    async with ctx.feed.subscribe("agent.*") as events:
        while True:
            state = await ctx.read(lambda tx: _state(tx, subject))
            left = deadline - asyncio.get_running_loop().time()
            if state.status is not Registration.PENDING or left <= 0:
                return state
            while (left := deadline - asyncio.get_running_loop().time()) > 0:
                event = await events.within(left)
                if event is None or event.subject == subject:
                    break


@op(allow=Level.READ, reads=True)
async def whoami(ctx: Ctx) -> Identity:
    """Who the server takes you for."""
    caller = ctx.caller
    return Identity(
        agent_id=caller.name,
        level=caller.level.name.lower(),
        persona_id=caller.persona,
        worktree=caller.worktree,
    )


@op(allow=Level.READ, reads=True)
async def list_agents(
    ctx: Ctx,
    status: Annotated[Registration | None, Field(description="Only agents in this state.")] = None,
    limit: Annotated[int, Field(ge=1, le=500)] = 200,
) -> Agents:
    """The agents of this project, oldest first."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list, status=status, limit=limit))
    return Agents(agents=[agent_of(row) for row in rows])


@approvals.effect("registration")
async def decide_registration(ctx: Ctx, approval: Approval, yes: bool, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Admit an agent with a grant, or turn it away."""

    internal = approval.subject.removeprefix("agent:")

    def admit(tx: Tx) -> dict[str, Any]:
        agent_id = _admit(tx, approval, internal, choices)
        outcome = {"agent_id": agent_id, "status": Registration.ASSIGNED}
        return approvals.decide(tx, approval, "approved", outcome=outcome)

    def turn_away(tx: Tx) -> dict[str, Any]:
        reason = str(choices.get("reason", ""))
        set_status(tx, internal, Registration.REJECTED, reason)
        outcome = {"agent_id": approval.payload["agent_id"], "status": Registration.REJECTED}
        return approvals.decide(tx, approval, "rejected", reason, outcome)

    return await ctx.write(admit if yes else turn_away)


def _admit(tx: Tx, approval: Approval, internal: str, choices: Mapping[str, Any]) -> str:
    approvals.check_choices(choices, {"agent_id", "persona_id", "role", "tool"})
    agent_id = access.check_agent_id(str(choices.get("agent_id") or _free_id(tx, approval.payload["name"])))
    if tx.one(SQL.by_agent_id, agent_id=agent_id):
        raise Conflict("AGENT_ID_TAKEN", f"Agent ID '{agent_id}' already exists. Choose another.")
    wanted = choices.get("persona_id") or approval.payload["persona_id"]
    persona = require_persona(tx, str(wanted)) if wanted else None
    persona_id, default_role = (persona.id, persona.role) if persona else (None, Role.WORKER)
    try:
        role, tool = Role(choices.get("role") or default_role), Tool(choices.get("tool") or Tool.WRITE)
    except ValueError as error:
        raise BadInput("INVALID_ARGUMENTS", f"{error}. Roles are worker and planner; tools read and write.") from None
    tx.run(SQL.admit, id=internal, agent_id=agent_id, persona_id=persona_id, role=role, tool=tool)
    tx.emit("agent.assigned", approval.subject, agent_id=agent_id, role=role, tool=tool, persona_id=persona_id)
    return agent_id


def _free_id(tx: Reader, name: str) -> str:
    base = access.id_from_name(name)
    return access.free_id(base, {row["id"] for row in tx.all(SQL.ids_like, prefix=base)})


def set_status(tx: Tx, internal: str, status: Registration, reason: str = "") -> None:
    """Move an agent to another registration status; nothing happens when it is there already."""
    if tx.run(SQL.set_status, id=internal, status=status):
        tx.emit(_EVENTS[status], f"agent:{internal}", reason=reason)


def activate(tx: Tx, internal: str) -> None:
    """An admitted agent is heard of: it is active from now on."""
    if tx.run(SQL.activate, id=internal):
        tx.emit("agent.activated", f"agent:{internal}")


def deactivate(tx: Tx, internal: str, reason: str) -> None:
    """An active agent is not heard of any more."""
    row = tx.one(SQL.by_id, id=internal)
    if row is not None and row["registration_status"] == Registration.ACTIVE:
        set_status(tx, internal, Registration.INACTIVE, reason)


def gone(tx: Tx, internal: str, reason: str) -> None:
    """An agent ended: an admitted one is inactive, one that still waited is turned away."""
    row = tx.one(SQL.by_id, id=internal)
    if row is None or row["registration_status"] in (Registration.REJECTED, Registration.REVOKED):
        return
    waiting = row["registration_status"] == Registration.PENDING
    set_status(tx, internal, Registration.REJECTED if waiting else Registration.INACTIVE, reason)
    _close_question(tx, internal, reason)


def revoke(tx: Tx, agent_id: str, reason: str) -> str:
    """Take an agent's admission away; its internal id.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``. Conflict: ``WRONG_STATE``.
    """
    agent = require_agent(tx, agent_id)
    if agent["registration_status"] == Registration.REVOKED:
        raise Conflict("WRONG_STATE", f"{agent_id} was revoked before.", status="revoked")
    internal: str = agent["id"]
    set_status(tx, internal, Registration.REVOKED, reason)
    _close_question(tx, internal, reason or "the agent was revoked")
    return internal


def _close_question(tx: Tx, internal: str, reason: str) -> None:
    if question := approvals.open_question(tx, "registration", f"agent:{internal}"):
        approvals.decide(tx, question, "rejected", reason)


def require_agent(tx: Reader, agent_id: str) -> Row:
    """The row of an agent by the id seen outside.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``.
    """
    row = tx.one(SQL.by_agent_id, agent_id=agent_id)
    if row is None:
        raise NotFound("AGENT_NOT_FOUND", f"There is no agent {agent_id!r}. list_agents names them.")
    return row


def agent_of(row: Row) -> Agent:
    """An agent from its row (the columns of the queries in the `.sql` file beside)."""
    return Agent(
        agent_id=row["assigned_agent_id"],
        name=row["name"],
        registration_status=row["registration_status"],
        persona_id=row["persona_id"],
        role=row["role"],
        tool=row["tool"],
        worktree=row["assigned_worktree"],
        parent=row["parent"],
        capabilities=json.loads(row["capabilities"]),
        registered_at=row["registered_at"],
        last_heartbeat=row["last_heartbeat"],
    )


def _state(tx: Reader, subject: str) -> RegistrationState:
    row = tx.one(SQL.by_id, id=subject.removeprefix("agent:"))
    assert row is not None, "a caller's agent exists"
    decided = tx.one(SQL.decision, subject=subject)
    status = Registration(row["registration_status"])
    return RegistrationState(
        agent_id=row["assigned_agent_id"],
        status=status,
        tool=row["tool"],
        role=row["role"],
        persona_id=row["persona_id"],
        reason=decided["reason"] if decided else None,
        message=_MESSAGES.get(status, "Admitted. Use your token on every request from now on."),
    )


_EVENTS = {
    Registration.INACTIVE: "agent.deactivated",
    Registration.REJECTED: "agent.rejected",
    Registration.REVOKED: "agent.revoked",
}
_MESSAGES = {
    Registration.PENDING: "Not decided yet. Ask again with wait_seconds.",
    Registration.REJECTED: "A person turned this registration down.",
}


def _check_capabilities(capabilities: Mapping[str, Any]) -> None:
    if len(json.dumps(capabilities)) > 10_000:
        raise BadInput("TOO_LARGE", "capabilities may have at most 10,000 characters of JSON.")
