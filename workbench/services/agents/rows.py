"""Agents' rows: their lookup by either id, and the changes of their registration status, each with an event.

Leaving closes an agent's pending approval. Registrations that are not decided in time, and grants, expire.
"""

from __future__ import annotations

from workbench.errors import Conflict, Hint, NotFound
from workbench.model import SECOND, Registration
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.rules import access
from workbench.services import approvals
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)


def session_of(tx: Reader, agent_uid: str) -> str | None:
    """The session an agent is in, deleted or not."""
    row = tx.one(SQL.in_session, id=agent_uid)
    return row["session_id"] if row else None


def agent_by_uid(tx: Reader, agent_uid: str) -> Row:
    """The row of an agent, which exists, by its internal id (`agents.id`)."""
    row = tx.one(SQL.by_id, id=agent_uid)
    assert row is not None, "the agent exists"
    return row


def require_agent(tx: Reader, agent_id: str) -> Row:
    """The row of an agent by its public id (`agent_id`).

    Raises:
        NotFound: ``AGENT_NOT_FOUND``.
    """
    row = tx.one(SQL.by_agent_id, agent_id=agent_id)
    if row is None:
        raise no_agent(agent_id)
    return row


def no_agent(agent_id: str) -> NotFound:
    """The error for an id of no agent, or of none that is visible to the caller."""
    return NotFound("AGENT_NOT_FOUND", f"There is no agent {agent_id!r}.", Hint("list_agents"))


def set_status(tx: Tx, agent_uid: str, status: Registration, reason: str = "") -> None:
    """Set an agent's registration status; does nothing if it has that status already."""
    if tx.run(SQL.set_status, id=agent_uid, status=status):
        tx.emit(_EVENTS[status], f"agent:{agent_uid}", session=session_of(tx, agent_uid), reason=reason)


def activate(tx: Tx, agent_uid: str) -> None:
    """Make an admitted agent active."""
    if tx.run(SQL.activate, id=agent_uid):
        tx.emit("agent.activated", f"agent:{agent_uid}", session=session_of(tx, agent_uid))


def deactivate(tx: Tx, agent_uid: str, reason: str) -> None:
    """Make an active agent inactive."""
    if agent_by_uid(tx, agent_uid)["registration_status"] == Registration.ACTIVE:
        set_status(tx, agent_uid, Registration.INACTIVE, reason)


def on_agent_exit(tx: Tx, agent_uid: str, reason: str) -> None:
    """End an agent: an admitted one becomes inactive, a pending one is rejected."""
    status = agent_by_uid(tx, agent_uid)["registration_status"]
    if status in access.TURNED_AWAY:
        return
    is_pending = status == Registration.PENDING
    set_status(tx, agent_uid, Registration.REJECTED if is_pending else Registration.INACTIVE, reason)
    _close_approval(tx, agent_uid, reason)


def revoke(tx: Tx, agent_id: str, reason: str) -> str:
    """Revoke an agent's admission; its internal id.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``. Conflict: ``WRONG_STATE``.
    """
    agent = require_agent(tx, agent_id)
    if agent["registration_status"] == Registration.REVOKED:
        raise Conflict("WRONG_STATE", f"{agent_id} is already revoked.", status="revoked")
    agent_uid: str = agent["id"]
    set_status(tx, agent_uid, Registration.REVOKED, reason)
    _close_approval(tx, agent_uid, reason or "the agent was revoked")
    return agent_uid


def _close_approval(tx: Tx, agent_uid: str, reason: str) -> None:
    if approval := approvals.open_question(tx, "registration", f"agent:{agent_uid}"):
        approvals.decide(tx, approval, "rejected", reason)


_EVENTS = {
    Registration.INACTIVE: "agent.deactivated",
    Registration.REJECTED: "agent.rejected",
    Registration.REVOKED: "agent.revoked",
}


@duty("expiring registrations", 0.25, serving=False)
async def expire_due(ctx: Ctx) -> None:
    """Reject registrations that were not decided in time, and end expired grants."""
    if await ctx.store.read_inline(lambda tx: something_due(tx, ctx.settings)):
        await ctx.of(SYSTEM).write(lambda tx: expire_registrations(tx, ctx.settings))


def expire_registrations(tx: Tx, settings: Settings) -> None:
    """Reject registrations that were not decided in time, and end expired grants, in the caller's transaction."""
    for row in tx.all(SQL.forgotten, before=tx.now - int(settings.pending_expires_seconds * SECOND)):
        on_agent_exit(tx, row["id"], "not decided in time")
    for row in tx.all(SQL.run_out, now=tx.now):
        tx.run(SQL.expire, id=row["id"])
        tx.emit("agent.expired", f"agent:{row['id']}", session=row["session_id"])
        if row["registration_status"] in access.MAY_ACT:
            set_status(tx, row["id"], Registration.INACTIVE, "the grant has expired")


def something_due(tx: Reader, settings: Settings) -> bool:
    """Whether `expire_registrations` has anything to do; costs two index lookups."""
    before = tx.now - int(settings.pending_expires_seconds * SECOND)
    return bool(tx.one(SQL.run_out, now=tx.now) or tx.one(SQL.forgotten, before=before))
