"""Agents come, wait and are admitted (spec 1): register, the pending desk, tokens, grants.

Registering returns a secret once; only its hash is kept. It opens nothing until a person has admitted the agent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from workbench.errors import (
    BadInput,
    Conflict,
    NotFound,
    Refused,
    Unauthenticated,
    Unavailable,
    WorkbenchError,
)
from workbench.model import SECOND, Level, Registration, Role, Tool, Wire, uuid7
from workbench.ops import Ctx, Ok, op
from workbench.rules import access
from workbench.rules.naming import Name as VisibleName
from workbench.services import approvals
from workbench.services.access.authentication import identify
from workbench.services.access.personas import require_persona
from workbench.services.agents import admission, grants
from workbench.services.agents.admission import Rule
from workbench.services.agents.grants import Grant
from workbench.services.approvals import Approval
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

if TYPE_CHECKING:
    from workbench.settings import Settings

SQL = beside(__file__)

AgentName = Annotated[VisibleName, Field(description="What people will call this agent.")]
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
    session_id: str | None
    reason: str | None
    message: str


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
    connection_id: Annotated[str | None, Field(max_length=200, description="The client id of the connection.")] = None,
) -> Registered:
    """Register as a new agent. A person decides; keep the token, it is shown only now."""
    _check_capabilities(capabilities)
    token = access.new_token("wba")

    def change(tx: Tx) -> Registered:
        return add_pending(
            tx, ctx, name, token, capabilities=capabilities, persona_id=persona_id, connection_id=connection_id
        )

    return entered(ctx, await ctx.write(change))


def entered(ctx: Ctx, made: Registered) -> Registered:
    """What follows a registration outside the store: whom a rule admitted goes on the allowlist too."""
    if made.status is Registration.ASSIGNED:
        ctx.allowlist.admit(made.agent_id)
    return made


@op(allow=Level.ANONYMOUS, tool=False)
async def register_agent(
    ctx: Ctx,
    persona_id: Annotated[str, Field(description="The kind of work wanted: implementer, reviewer, …")],
    name: Annotated[AgentName | None, Field(description="The persona's id when null.")] = None,
    capabilities: Capabilities = {},
) -> Registered:
    """Register for work of a persona. A person decides; keep the token, it is shown only now."""
    return await register(ctx, name or persona_id[:100], capabilities, persona_id)


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
    connection_id: str | None = None,
) -> Registered:
    """Add an agent, and the question about it, in one transaction; a rule that fits answers it at once.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``. Unavailable: ``TOO_MANY_PENDING``.
        Refused: ``TOOL_DISABLED``: registering is switched off.
    """
    _check_open(tx, ctx)
    persona = require_persona(tx, persona_id) if persona_id else None
    persona_id, role = (persona.id, persona.role) if persona else (None, Role.WORKER)
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
        connection_id=connection_id,
        client=ctx.caller.client,
        address=ctx.caller.address,
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
        "suggested_session": _suggested_session(tx, parent),
        "connection_id": connection_id,
        "client": ctx.caller.client,
        "address": ctx.caller.address,
    }
    approval_id = approvals.ask(tx, "registration", f"agent:{internal}", payload)
    rule = None if ctx.caller.level is Level.OPERATOR else admission.matching(tx, name, ctx.caller.address)
    admitted = _admit_by_rule(tx, rule, internal) if rule is not None else None
    return Registered(
        agent_id=admitted or agent_id,
        status=Registration.ASSIGNED if admitted else Registration.PENDING,
        token=token,
        approval_id=approval_id,
        message="Registration successful. "
        + ("Admitted by a rule." if admitted else "Waiting for human assignment of permanent agent_id."),
    )


def _check_open(tx: Reader, ctx: Ctx) -> None:
    """Limits are for strangers and for agents that spawn others, never for the person."""
    if ctx.caller.level is Level.OPERATOR:
        return
    open_ = tx.one(SQL.may_register)
    if open_ and not open_["enabled"]:
        raise Refused("TOOL_DISABLED", "Registering is switched off for now. Ask the person to switch it on.")
    waiting = tx.one(SQL.count_pending, address=ctx.caller.address)
    assert waiting is not None
    full = waiting["n"] >= ctx.settings.max_pending_agents
    if full or (waiting["from_there"] or 0) >= ctx.settings.max_pending_per_address:
        raise Unavailable("TOO_MANY_PENDING", "Too many agents wait for a decision. Try again later.")


def _suggested_session(tx: Reader, parent: str | None) -> dict[str, Any] | None:
    """The session of the agent that spawned this one, else the one that was used last."""
    found = tx.one(SQL.session_of, id=parent) if parent else None
    found = found or grants.last_session(tx)
    return dict(found) if found else None


def _admit_by_rule(tx: Tx, rule: Rule, internal: str) -> str | None:
    """The id a rule gives; None when its grant cannot be given any more: then a person is asked, and told why."""
    question = approvals.open_question(tx, "registration", f"agent:{internal}")
    assert question is not None, "it was asked in this transaction"
    with tx.acting(f"rule:{rule.name}"):
        try:
            agent_id = _admit(tx, question, internal, rule.grants)
        except WorkbenchError as error:
            tx.emit("rule.failed", f"rule:{rule.name}", agent=internal, code=error.code, error=error.message)
            return None
        outcome = {"agent_id": agent_id, "status": Registration.ASSIGNED}
        approvals.decide(tx, question, "approved", f"by the rule {rule.name}", outcome)
    return agent_id


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

    if not yes:
        return await ctx.write(turn_away)
    ctx.allowlist.require_writable()
    outcome = await ctx.write(admit)
    ctx.allowlist.admit(outcome["agent_id"])
    return outcome


def _admit(tx: Tx, approval: Approval, internal: str, choices: Mapping[str, Any]) -> str:
    agent = tx.one(SQL.by_id, id=internal)
    assert agent is not None, "an approval's agent exists"
    grant = _with_defaults(tx, agent, grants.parse(choices))
    granted = grants.apply(tx, agent, grant)
    tx.run(SQL.admit, id=internal)
    shown = {key: value for key, value in granted.items() if key != "assigned_agent_id"}
    session = granted.get("session_id")
    told = {"agent_id": grant.agent_id, "role": grant.role, "tool": grant.tool or Tool.WRITE} | shown
    tx.emit("agent.assigned", approval.subject, session=session, **told)
    assert grant.agent_id is not None
    return grant.agent_id


def _with_defaults(tx: Reader, agent: Row, grant: Grant) -> Grant:
    """What a person did not say: a free id made of the name, the role of the persona, the session in use."""
    chosen: dict[str, Any] = {}
    if not grant.agent_id:
        chosen["agent_id"] = _free_id(tx, grant.name or agent["name"])
    persona_id = grant.persona_id if "persona_id" in grant.model_fields_set else agent["persona_id"]
    if grant.role is None:
        chosen["role"] = require_persona(tx, persona_id).role if persona_id else Role.WORKER
    if not {"session_id", "team_id"} & grant.model_fields_set:
        suggested = _suggested_session(tx, agent["parent_agent_id"])
        chosen["session_id"] = suggested["id"] if suggested else None
    return grant.model_copy(update=chosen)


def _free_id(tx: Reader, name: str) -> str:
    base = access.id_from_name(name)
    return access.free_id(base, {row["id"] for row in tx.all(SQL.ids_like, prefix=base)})


def set_status(tx: Tx, internal: str, status: Registration, reason: str = "") -> None:
    """Move an agent to another registration status; nothing happens when it is there already."""
    if tx.run(SQL.set_status, id=internal, status=status):
        tx.emit(_EVENTS[status], f"agent:{internal}", session=session_of(tx, internal), reason=reason)


def activate(tx: Tx, internal: str) -> None:
    """An admitted agent is heard of: it is active from now on."""
    if tx.run(SQL.activate, id=internal):
        tx.emit("agent.activated", f"agent:{internal}", session=session_of(tx, internal))


def heard_of(tx: Tx, internal: str) -> None:
    """An agent has asked for something: that is a heartbeat of its presence, though not of its leases."""
    tx.run(SQL.heard_of, id=internal, now=tx.now)
    activate(tx, internal)


def session_of(tx: Reader, internal: str) -> str | None:
    """The session an agent is in, deleted or not."""
    row = tx.one(SQL.in_session, id=internal)
    return row["session_id"] if row else None


def deactivate(tx: Tx, internal: str, reason: str) -> None:
    """An active agent is not heard of any more."""
    row = tx.one(SQL.by_id, id=internal)
    if row is not None and row["registration_status"] == Registration.ACTIVE:
        set_status(tx, internal, Registration.INACTIVE, reason)


def gone(tx: Tx, internal: str, reason: str) -> None:
    """An agent ended: an admitted one is inactive, one that still waited is turned away."""
    row = tx.one(SQL.by_id, id=internal)
    if row is None or row["registration_status"] in access.TURNED_AWAY:
        return
    waiting = row["registration_status"] == Registration.PENDING
    set_status(tx, internal, Registration.REJECTED if waiting else Registration.INACTIVE, reason)
    _close_question(tx, internal, reason)


def settle(tx: Tx, settings: Settings) -> None:
    """What time alone decides: questions nobody answered, grants that ran out, agents that fell silent."""
    for row in tx.all(SQL.forgotten, before=tx.now - int(settings.pending_expires_seconds * SECOND)):
        gone(tx, row["id"], "nobody decided in time")
    for row in tx.all(SQL.run_out, now=tx.now):
        tx.run(SQL.expire, id=row["id"])
        tx.emit("agent.expired", f"agent:{row['id']}", session=row["session_id"])
        if row["registration_status"] in access.MAY_ACT:
            set_status(tx, row["id"], Registration.INACTIVE, "the grant has run out")


def something_due(tx: Reader, settings: Settings) -> bool:
    """Whether `settle` would find anything; a few probes of indexes."""
    before = tx.now - int(settings.pending_expires_seconds * SECOND)
    return bool(tx.one(SQL.run_out, now=tx.now) or tx.one(SQL.forgotten, before=before))


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
        raise no_agent(agent_id)
    return row


def no_agent(agent_id: str) -> NotFound:
    """What is raised for an id that nobody has, or nobody the caller may see."""
    return NotFound("AGENT_NOT_FOUND", f"There is no agent {agent_id!r}. list_agents names them.")


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
        session_id=row["session_id"],
        reason=decided["reason"] if decided else None,
        message=_MESSAGES.get(status, "Admitted. Use your token on every request from now on."),
    )


_EVENTS = {
    Registration.INACTIVE: "agent.deactivated",
    Registration.REJECTED: "agent.rejected",
    Registration.REVOKED: "agent.revoked",
}
_MESSAGES = {
    Registration.REVOKED: "A person took this admission away.",
    Registration.PENDING: "Not decided yet. Ask again with wait_seconds.",
    Registration.REJECTED: "A person turned this registration down.",
}


def _check_capabilities(capabilities: Mapping[str, Any]) -> None:
    if len(json.dumps(capabilities)) > 10_000:
        raise BadInput("TOO_LARGE", "capabilities may have at most 10,000 characters of JSON.")
