"""An agent's registration status: each change is an event, and settles the question about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import (
    Conflict,
)
from workbench.model import Registration
from workbench.rules import access
from workbench.services import approvals
from workbench.services.agents.rows import agent_row
from workbench.store.base import Tx
from workbench.store.queries import beside

if TYPE_CHECKING:
    pass
from workbench.services.agents.rows import require_agent, session_of

SQL = beside(__file__)


def set_status(tx: Tx, agent_uid: str, status: Registration, reason: str = "") -> None:
    """Move an agent to another registration status; nothing happens when it is there already."""
    if tx.run(SQL.set_status, id=agent_uid, status=status):
        tx.emit(_EVENTS[status], f"agent:{agent_uid}", session=session_of(tx, agent_uid), reason=reason)


def activate(tx: Tx, agent_uid: str) -> None:
    """An admitted agent is heard of: it is active from now on."""
    if tx.run(SQL.activate, id=agent_uid):
        tx.emit("agent.activated", f"agent:{agent_uid}", session=session_of(tx, agent_uid))


def deactivate(tx: Tx, agent_uid: str, reason: str) -> None:
    """An active agent is not heard of any more."""
    row = agent_row(tx, agent_uid)
    if row is not None and row["registration_status"] == Registration.ACTIVE:
        set_status(tx, agent_uid, Registration.INACTIVE, reason)


def on_agent_exit(tx: Tx, agent_uid: str, reason: str) -> None:
    """An agent ended: an admitted one is inactive, one that still waited is turned away."""
    row = agent_row(tx, agent_uid)
    if row is None or row["registration_status"] in access.TURNED_AWAY:
        return
    waiting = row["registration_status"] == Registration.PENDING
    set_status(tx, agent_uid, Registration.REJECTED if waiting else Registration.INACTIVE, reason)
    close_question(tx, agent_uid, reason)


def revoke(tx: Tx, agent_id: str, reason: str) -> str:
    """Take an agent's admission away; its internal id.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``. Conflict: ``WRONG_STATE``.
    """
    agent = require_agent(tx, agent_id)
    if agent["registration_status"] == Registration.REVOKED:
        raise Conflict("WRONG_STATE", f"{agent_id} was revoked before.", status="revoked")
    agent_uid: str = agent["id"]
    set_status(tx, agent_uid, Registration.REVOKED, reason)
    close_question(tx, agent_uid, reason or "the agent was revoked")
    return agent_uid


def close_question(tx: Tx, agent_uid: str, reason: str) -> None:
    if question := approvals.open_question(tx, "registration", f"agent:{agent_uid}"):
        approvals.decide(tx, question, "rejected", reason)


_EVENTS = {
    Registration.INACTIVE: "agent.deactivated",
    Registration.REJECTED: "agent.rejected",
    Registration.REVOKED: "agent.revoked",
}
