"""The project's side of an import: what it has, the backup, and adding rows with their events."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from workbench.errors import Unavailable
from workbench.legacy.plan import Plan, Present
from workbench.legacy.source import TABLES, Legacy
from workbench.model import SECOND
from workbench.rules import access
from workbench.settings import Settings
from workbench.store.base import Reader, Tx, Values
from workbench.store.queries import beside

SQL = beside(__file__)

_ADD = {
    "projects": SQL.add_project,
    "sessions": SQL.add_session,
    "teams": SQL.add_team,
    "agents": SQL.add_agent,
    "contexts": SQL.add_context,
}
_EVENTS = {
    "projects": "project.migrated",
    "sessions": "session.migrated",
    "teams": "team.migrated",
    "contexts": "context.migrated",
}


def present(tx: Reader) -> Present:
    """What an import has to know about the project."""
    made: dict[str, dict[str, int]] = {table: {} for table in TABLES}
    for row in tx.all(SQL.ids):
        made[row["place"]][row["id"]] = row["created_at"]
    sessions = tx.all(SQL.sessions)
    return Present(
        made=made,
        names=frozenset((row["place"], row["parent"], row["name"]) for row in tx.all(SQL.names)),
        agent_ids=frozenset(row["id"] for row in tx.all(SQL.agent_ids)),
        numbers=frozenset((row["session_id"], row["sequence_number"]) for row in tx.all(SQL.numbers)),
        last={row["id"]: row["contexts"] for row in sessions},
        projects={row["id"]: row["project_id"] for row in sessions},
    )


def add(tx: Tx, plan: Plan, legacy: Legacy) -> None:
    """Add the planned rows, with an event for each agent and one for each other table."""
    for table in TABLES:
        tx.many(_ADD[table], map(_with_secret, plan.rows[table]) if table == "agents" else plan.rows[table])
    tx.many(SQL.count_contexts, plan.last)
    for table, kind in _EVENTS.items():
        if rows := plan.rows[table]:
            tx.emit(kind, f"legacy:{legacy.name}", found=legacy.found[table], added=len(rows))
    for row in plan.rows["agents"]:
        tx.emit("agent.migrated", f"agent:{row['id']}", session=row["session_id"], agent_id=row["agent_id"])


def _with_secret(agent: Values) -> Values:
    """An agent with the hash of a token that is given to no one."""
    return {**agent, "token_hash": access.token_hash(access.new_token("wba"))}


def back_up(settings: Settings, now: int) -> Path:
    """Copy the store to `.aiswarm/backups/`, completely or not at all; the path of the copy.

    The store may be open meanwhile, also in this process: it is the same SQLite library, and this connection only
    reads.

    Raises:
        Unavailable: ``BACKUP_FAILED``.
    """
    at = datetime.fromtimestamp(now / SECOND, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    backup = settings.home / "backups" / f"coordination-{at}.db"
    unfinished = backup.with_suffix(".part")
    try:
        backup.parent.mkdir(exist_ok=True)
        try:
            _copy(settings.database, unfinished)
            unfinished.rename(backup)
        finally:
            unfinished.unlink(missing_ok=True)
    except (OSError, sqlite3.Error) as error:
        raise Unavailable(
            "BACKUP_FAILED",
            f"The store could not be backed up to {backup.parent}: {error}. Nothing was changed. Free some "
            "space or make the directory writable, and import again.",
            reason=str(error),
        ) from error
    return backup


def _copy(database: Path, copy: Path) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        db.execute(SQL.copy.sqlite, {"path": str(copy)})
    with copy.open("rb") as written:
        os.fsync(written.fileno())  # SQLite does not do that for the file of VACUUM INTO
