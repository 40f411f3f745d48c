"""The rows of agents: finding one by the id seen outside, or by the internal one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.errors import (
    NotFound,
)
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

if TYPE_CHECKING:
    pass


SQL = beside(__file__)


def session_of(tx: Reader, agent_uid: str) -> str | None:
    """The session an agent is in, deleted or not."""
    row = tx.one(SQL.in_session, id=agent_uid)
    return row["session_id"] if row else None


def agent_row(tx: Reader, uid: str) -> Row | None:
    """The row of an agent by its internal id (`agents.id`)."""
    return tx.one(SQL.by_id, id=uid)


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
