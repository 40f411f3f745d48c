"""The project's side of an import: what it has, and adding rows with their events."""

from __future__ import annotations

from workbench.legacy.plan import MigrationPlan, Present
from workbench.legacy.source import TABLES, Legacy
from workbench.rules import access
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


def add(tx: Tx, plan: MigrationPlan, legacy: Legacy) -> None:
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
