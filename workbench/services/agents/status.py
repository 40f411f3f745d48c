"""Changes of an agent's registration status, each with an event; leaving also closes its pending approval."""

from __future__ import annotations

from workbench.errors import Conflict
from workbench.model import Registration
from workbench.rules import access
from workbench.services import approvals
from workbench.services.agents.rows import agent_row, require_agent, session_of
from workbench.store.base import Tx
from workbench.store.queries import beside

SQL = beside(__file__)


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
    row = agent_row(tx, agent_uid)
    if row is not None and row["registration_status"] == Registration.ACTIVE:
        set_status(tx, agent_uid, Registration.INACTIVE, reason)


def on_agent_exit(tx: Tx, agent_uid: str, reason: str) -> None:
    """End an agent: an admitted one becomes inactive, a pending one is rejected."""
    row = agent_row(tx, agent_uid)
    if row is None or row["registration_status"] in access.TURNED_AWAY:
        return
    waiting = row["registration_status"] == Registration.PENDING
    set_status(tx, agent_uid, Registration.REJECTED if waiting else Registration.INACTIVE, reason)
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
