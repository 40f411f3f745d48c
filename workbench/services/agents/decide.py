"""Decisions about registrations, by the operator or a rule: the agent is admitted with a grant, or rejected."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from workbench.errors import WorkbenchError
from workbench.model import GrantedAccess, Registration, Role, iso
from workbench.ops import Ctx
from workbench.rules import access
from workbench.services import approvals
from workbench.services.access.personas import require_persona
from workbench.services.agents import grants
from workbench.services.agents.admission import AdmissionRule
from workbench.services.agents.grants import Grant
from workbench.services.agents.rows import agent_by_uid, set_status
from workbench.services.approvals import ApprovalInfo
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


def suggested_session(tx: Reader, parent: str | None, session: str | None = None) -> dict[str, Any] | None:
    """The session to suggest for an agent: its parent's, else the one in which the operator spawned it, or none.

    Args:
        parent: the agent that spawned it.
        session: the session in which the operator spawned it.
    """
    row = tx.one(SQL.session_of, id=parent) if parent else None
    row = row or (tx.one(SQL.space, id=session) if session else None)
    return dict(row) if row else None


def admit_by_rule(tx: Tx, rule: AdmissionRule, agent_uid: str) -> str | None:
    """Admit an agent by a rule; its new id.

    None if the rule's grant is no longer valid: `rule.failed` is emitted, and the approval waits for the operator.
    """
    with tx.acting(f"rule:{rule.name}"):
        try:
            return admit_at_once(tx, agent_uid, rule.grants, f"by the rule {rule.name}")
        except WorkbenchError as error:
            tx.emit("rule.failed", f"rule:{rule.name}", agent=agent_uid, code=error.code, error=error.message)
            return None


def admit_at_once(tx: Tx, agent_uid: str, choices: Mapping[str, Any] = {}, reason: str = "") -> str:
    """Admit an agent in the transaction that registers it, so that nobody sees the question; its new id."""
    approval = approvals.open_question(tx, "registration", f"agent:{agent_uid}")
    assert approval is not None, "it was requested in this transaction"
    agent_id = _admit(tx, approval, agent_uid, choices)
    approvals.decide(tx, approval, "approved", reason, _outcome(tx, agent_uid))
    return agent_id


@approvals.decision_handler("registration")
async def decide_registration(
    ctx: Ctx, approval: ApprovalInfo, yes: bool, choices: Mapping[str, Any]
) -> dict[str, Any]:
    """Admit an agent with a grant, or reject it."""

    agent_uid, person = approval.subject.removeprefix("agent:"), approvals.person_of(ctx)

    def admit(tx: Tx) -> dict[str, Any]:
        _admit(tx, approval, agent_uid, choices)
        return approvals.decide(tx, approval, "approved", outcome=_outcome(tx, agent_uid), person=person)

    def reject(tx: Tx) -> dict[str, Any]:
        reason = str(choices.get("reason", ""))
        set_status(tx, agent_uid, Registration.REJECTED, reason)
        outcome = {"agent_id": approval.payload["agent_id"], "status": Registration.REJECTED}
        return approvals.decide(tx, approval, "rejected", reason, outcome, person)

    if not yes:
        return await ctx.write(reject)
    ctx.allowlist.require_writable()
    await grants.require_tools(ctx, grants.parse(choices), approval.payload.get("tools") or ())
    outcome = await ctx.write(admit)
    ctx.allowlist.admit(outcome["agent_id"])
    return outcome


def _admit(tx: Tx, approval: ApprovalInfo, agent_uid: str, choices: Mapping[str, Any]) -> str:
    agent = agent_by_uid(tx, agent_uid)
    grant = _with_defaults(tx, agent, approval.payload, grants.parse(choices))
    granted = grants.apply(tx, agent, grant)
    tx.run(SQL.admit, id=agent_uid)
    columns = {key: value for key, value in granted.items() if key != "assigned_agent_id"}
    session = granted.get("session_id")
    data = {"agent_id": grant.agent_id, "role": grant.role, "tool": grant.tool or GrantedAccess.WRITE} | columns
    tx.emit("agent.assigned", approval.subject, session=session, **data, before=grants.before(agent, granted))
    assert grant.agent_id is not None
    return grant.agent_id


def _outcome(tx: Reader, agent_uid: str) -> dict[str, Any]:
    """The grant of an admitted agent: `session` is null, or ``{"id", "name", "project"}``."""
    agent, session = agent_by_uid(tx, agent_uid), tx.one(SQL.session_of, id=agent_uid)
    columns = ("name", "persona_id", "role", "tool", "access_level", "team", "self_tools")
    granted = {column: agent[column] for column in columns}
    definition = tx.one(SQL.definition_of, id=agent_uid)
    return {
        "agent_id": agent["assigned_agent_id"],
        "status": Registration.ASSIGNED,
        "granted": {
            **granted,
            "worktree": agent["assigned_worktree"],
            "session": dict(session) if session else None,
            "definition": definition["name"] if definition else None,
            "definitions": bool(agent["may_define"]),
            "tools": json.loads(agent["tools"]),
            "expires_at": iso(agent["expires_at"]) if agent["expires_at"] else None,
        },
    }


def _with_defaults(tx: Reader, agent: Row, request: Mapping[str, Any], grant: Grant) -> Grant:
    """Fill in what was not chosen: the id and the session that the request suggests, and the persona's role.

    An id that was taken since gets a number. A session that was deleted since is none.
    """
    defaults: dict[str, Any] = {}
    if not grant.agent_id:
        defaults["agent_id"] = free_agent_id(tx, grant.name or request["suggested_id"])
    persona_id = grant.persona_id if "persona_id" in grant.model_fields_set else agent["persona_id"]
    if grant.role is None:
        defaults["role"] = require_persona(tx, persona_id).role if persona_id else Role.WORKER
    if not {"session_id", "team_id"} & grant.model_fields_set:
        session = request["suggested_session"]
        defaults["session_id"] = session["id"] if session and tx.one(SQL.session, id=session["id"]) else None
    return grant.model_copy(update=defaults)


def free_agent_id(tx: Reader, name: str) -> str:
    """An id made from a name that no agent has or had."""
    base = access.id_from_name(name)
    return access.free_id(base, _taken(tx, base))


def suggested_id(tx: Reader, name: str) -> str:
    """An id to suggest for a registration: free, and not suggested for another that waits for its decision."""
    base = access.id_from_name(name)
    pending_ids = (str(json.loads(row["payload"]).get("suggested_id")) for row in tx.all(SQL.suggested, prefix=base))
    return access.free_id(base, {*_taken(tx, base), *pending_ids})


def _taken(tx: Reader, base: str) -> set[str]:
    return {row["id"] for row in tx.all(SQL.ids_like, prefix=base)}
