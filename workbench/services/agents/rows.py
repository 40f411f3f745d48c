"""Lookup of agents' rows, by their public id or their internal one."""

from __future__ import annotations

from workbench.errors import NotFound
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)


def session_of(tx: Reader, agent_uid: str) -> str | None:
    """The session an agent is in, deleted or not."""
    row = tx.one(SQL.in_session, id=agent_uid)
    return row["session_id"] if row else None


def agent_row(tx: Reader, uid: str) -> Row | None:
    """The row of an agent by its internal id (`agents.id`)."""
    return tx.one(SQL.by_id, id=uid)


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
    return NotFound("AGENT_NOT_FOUND", f"There is no agent {agent_id!r}. list_agents lists them.")
