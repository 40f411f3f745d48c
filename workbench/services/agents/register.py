"""Registration of agents, and waiting for the decision (spec 1).

The registration returns the token once; only its hash is stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import BadInput, Refused, Unauthenticated, Unavailable
from workbench.model import GrantedAccess, Level, Registration, Role, SelfTools, Wire, uuid7
from workbench.ops import SAID, Ctx, Ok, RestRoute, op
from workbench.rules import access
from workbench.rules.naming import Name as VisibleName
from workbench.services import approvals
from workbench.services.access.authentication import identify
from workbench.services.access.personas import require_persona
from workbench.services.agents import admission
from workbench.services.agents.decide import admit_at_once, admit_by_rule, suggested_id, suggested_session
from workbench.services.agents.rows import agent_by_uid
from workbench.state.settings import Settings
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside
from workbench.system.users import user_name

SQL = beside(__file__)

ANNOUNCED_AS = "announced_as"
"""The capability with the id under which an older client announced itself; the suggested id is made from it."""

AgentName = Annotated[VisibleName, SAID, Field(description="Display name of the agent.")]
Capabilities = Annotated[
    dict[str, Any], SAID, Field(description="What the agent can do; free-form, at most 10 kB of JSON.")
]
WantedPersona = Annotated[str, Field(description="The persona to work as, such as implementer or planner.")]
WaitSeconds = Annotated[float, Field(ge=0, le=30, description="Wait this long for the decision before answering.")]


class OwnDefinition(Wire):
    """The definition that a new agent has: its id and name, the content hash it has now, and what the agent may do with
    it.
    """

    id: str
    name: str
    hash: str
    self_tools: SelfTools


class Registered(Wire):
    """A registration, pending or admitted by a rule. The token is returned only this once."""

    agent_id: str
    status: Registration
    token: str
    approval_id: int
    message: str


class RegistrationState(Wire):
    """The state of a registration. `worktree_path` is the directory to work in, and to change nothing outside of."""

    agent_id: str
    status: Registration
    tool: GrantedAccess
    role: Role
    persona_id: str | None
    session_id: str | None
    worktree: str | None
    worktree_path: str | None
    reason: str | None
    message: str


@op(allow=Level.ANONYMOUS, reads=True, tool=False)
async def ping(ctx: Ctx) -> Ok:
    """Check that the server answers."""
    return Ok()


@op(allow=Level.ANONYMOUS, rest=RestRoute("POST", "/agents"))
async def register(
    ctx: Ctx,
    name: AgentName,
    capabilities: Capabilities = {},
    persona_id: WantedPersona | None = None,
    connection_id: Annotated[
        str | None, SAID, Field(max_length=200, description="The client id of the connection.")
    ] = None,
) -> Registered:
    """Register as a new agent. The operator decides. Keep the token: it is returned only once."""
    _check_capabilities(capabilities)
    token = access.new_token("wba")

    def change(tx: Tx) -> Registered:
        return add_pending(
            tx, ctx, name, token, capabilities=capabilities, persona_id=persona_id, connection_id=connection_id
        )

    return allow_admitted(ctx, await ctx.write(change))


def allow_admitted(ctx: Ctx, registration: Registered) -> Registered:
    """Put an agent that was admitted at once on the allowlist; called after the commit."""
    if registration.status is Registration.ASSIGNED:
        ctx.allowlist.admit(registration.agent_id)
    return registration


@op(allow=Level.ANONYMOUS, tool=False)
async def register_agent(
    ctx: Ctx,
    persona_id: WantedPersona,
    name: Annotated[AgentName | None, SAID, Field(description="Display name; default: the persona's id.")] = None,
    capabilities: Capabilities = {},
) -> Registered:
    """Register to work as a persona. The operator decides. Keep the token: it is returned only once."""
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
    definition: OwnDefinition | None = None,
    environment: Sequence[str] = (),
    tools: Sequence[str] = (),
    opens: Sequence[str] = (),
    connection_id: str | None = None,
    admitted_by: str | None = None,
) -> Registered:
    """Add an agent and its approval request, in one transaction; a matching rule admits it at once.

    Args:
        admitted_by: the actor that admits it at once; None: a rule does, or the operator decides.
        environment: the names of the variables that are set for its commands.
        tools: what of the tools in the catalogue it may call, once it is admitted.
        opens: what its workplace opens to its commands.

    Raises:
        NotFound: ``PERSONA_NOT_FOUND``. Unavailable: ``TOO_MANY_PENDING``.
        Refused: ``TOOL_DISABLED``: registration is disabled.
    """
    _check_open(tx, ctx)
    user = admission.user_of(ctx.caller)
    persona = require_persona(tx, persona_id) if persona_id else None
    persona_id, role = (persona.id, persona.role) if persona else (None, Role.WORKER)
    agent_uid = str(uuid7(tx.now))
    agent_id = f"pending_{agent_uid}"
    tx.run(
        SQL.add,
        id=agent_uid,
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
    if definition is not None:
        tx.run(SQL.define, id=agent_uid, definition=definition.id, self_tools=definition.self_tools)
    if tools:
        tx.run(SQL.grant_tools, id=agent_uid, tools=json.dumps(sorted(set(tools))))
    tx.emit("agent.registered", f"agent:{agent_uid}", agent_id=agent_id, name=name, persona_id=persona_id)
    payload = {
        "agent_id": agent_id,
        "name": name,
        "persona_id": persona_id,
        "role": role,
        "capabilities": capabilities,
        "worktree": worktree,
        "profile": profile,
        "definition": definition.model_dump(mode="json") if definition else None,
        "environment": list(environment),
        "tools": list(tools),
        "opens": list(opens),
        "spawned_by": tx.actor if profile else None,
        "suggested_id": suggested_id(tx, str(capabilities.get(ANNOUNCED_AS) or name)),
        "suggested_session": suggested_session(tx, parent, ctx.caller.session),
        "connection_id": connection_id,
        "client": ctx.caller.client,
        "address": ctx.caller.address,
        "other_user": user_name(user) if user not in (None, os.geteuid()) else None,
    }
    approval_id = approvals.ask(tx, "registration", f"agent:{agent_uid}", payload)
    admitted: str | None = None
    if admitted_by is not None:
        with tx.acting(admitted_by):
            admitted = admit_at_once(tx, agent_uid)
    elif ctx.caller.level is not Level.OPERATOR and (rule := admission.matching(tx, name, ctx.caller, user)):
        admitted = admit_by_rule(tx, rule, agent_uid)
    return Registered(
        agent_id=admitted or agent_id,
        status=Registration.ASSIGNED if admitted else Registration.PENDING,
        token=token,
        approval_id=approval_id,
        message="Registration successful. "
        + ("Admitted." if admitted else "Waiting for human assignment of permanent agent_id."),
    )


def _check_open(tx: Reader, ctx: Ctx) -> None:
    """Check that registration is enabled and the limits are not reached; neither applies to the operator."""
    if ctx.caller.level is Level.OPERATOR:
        return
    open_ = tx.one(SQL.may_register)
    if open_ and not open_["enabled"]:
        raise Refused("TOOL_DISABLED", "Registration is disabled. Ask the operator to enable it.")
    pending = tx.one(SQL.count_pending, address=ctx.caller.address)
    assert pending is not None
    full = pending["n"] >= ctx.settings.max_pending_agents
    if full or (pending["from_there"] or 0) >= ctx.settings.max_pending_per_address:
        raise Unavailable(
            "TOO_MANY_PENDING",
            "Too many registrations are waiting for a decision. Try again later: the operator can reject many at once, "
            "with `workbench reject --all --named PATTERN`.",
        )


@op(allow=Level.ANONYMOUS, reads=True, command="call registration_status")
async def registration_status(
    ctx: Ctx,
    token: Annotated[str | None, Field(description="Your token, if the request does not carry it.")] = None,
    wait_seconds: WaitSeconds = 0,
) -> RegistrationState:
    """Get the state of your registration; waits up to wait_seconds for the decision."""
    caller = await identify(ctx.store, token) if token else ctx.caller
    if caller.agent is None:
        raise Unauthenticated("TOKEN_REQUIRED", "Send the token that register returned.")
    subject = f"agent:{caller.agent}"
    return await ctx.feed.until(
        lambda tx: _state(tx, ctx.settings, subject),
        lambda state: state.status is not Registration.PENDING,
        "agent.*",
        subject=subject,
        seconds=wait_seconds,
    )


def _state(tx: Reader, settings: Settings, subject: str) -> RegistrationState:
    row = agent_by_uid(tx, subject.removeprefix("agent:"))
    decision = tx.one(SQL.decision, subject=subject)
    status, worktree = Registration(row["registration_status"]), row["assigned_worktree"]
    reason = decision["reason"] if decision else None
    return RegistrationState(
        agent_id=row["assigned_agent_id"],
        status=status,
        tool=row["tool"],
        role=row["role"],
        persona_id=row["persona_id"],
        session_id=row["session_id"],
        worktree=worktree,
        worktree_path=str(settings.worktree(worktree)) if worktree else None,
        reason=reason,
        message=access.rejected(reason).message if status is Registration.REJECTED else _MESSAGES[status],
    )


_ADMITTED = "Admitted. Use your token on every request from now on."
_MESSAGES = {
    **dict.fromkeys(access.MAY_ACT, _ADMITTED),
    Registration.REVOKED: "The operator revoked your admission.",
    Registration.PENDING: "Not decided yet. Call again with wait_seconds.",
}


def _check_capabilities(capabilities: Mapping[str, Any]) -> None:
    if len(json.dumps(capabilities)) > 10_000:
        raise BadInput("TOO_LARGE", "capabilities may have at most 10,000 characters of JSON.")
