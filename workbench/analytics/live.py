"""DuckDB over the live store, kept up to date by event id.

The first question loads everything; each later one loads only what the events since then are
about. The store is read through its own library: a second SQLite library in the process would
break its file locks, so no DuckDB extension opens the file.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import BadInput
from workbench.settings import Settings
from workbench.store.base import Reader, Row, Store
from workbench.store.feed import PAGE, last_event_id
from workbench.store.queries import Query, beside

if TYPE_CHECKING:
    import duckdb

SQL = beside(__file__)
VIEWS = Path(__file__).with_name("views.sql")


@dataclass(frozen=True)
class Mirror:
    """A table copied into DuckDB: its columns there, the query that reads it, and what refreshes it.

    `noun` is the subject of the events that say a row changed; `key` the column that subject names.
    """

    table: str
    columns: dict[str, str]
    rows: Query
    noun: str
    key: str


MIRRORS = (
    Mirror(
        "raw_tasks",
        {
            "id": "BIGINT",
            "title": "VARCHAR",
            "plan": "VARCHAR",
            "name": "VARCHAR",
            "persona": "VARCHAR",
            "worktree": "VARCHAR",
            "parent_id": "BIGINT",
            "priority": "BIGINT",
            "status": "VARCHAR",
            "agent": "VARCHAR",
            "attempt": "BIGINT",
            "retry_count": "BIGINT",
            "progress": "BIGINT",
            "created_us": "BIGINT",
            "claimed_us": "BIGINT",
            "started_us": "BIGINT",
            "completed_us": "BIGINT",
            "result": "VARCHAR",
            "artifacts": "VARCHAR",
            "error": "VARCHAR",
        },
        SQL.tasks,
        "task",
        "id",
    ),
    Mirror(
        "raw_attempts",
        {
            "task_id": "BIGINT",
            "attempt": "BIGINT",
            "agent": "VARCHAR",
            "claimed_us": "BIGINT",
            "started_us": "BIGINT",
            "ended_us": "BIGINT",
            "outcome": "VARCHAR",
            "error": "VARCHAR",
        },
        SQL.attempts,
        "task",
        "task_id",
    ),
    Mirror(
        "raw_dependencies",
        {"task_id": "BIGINT", "depends_on": "BIGINT"},
        SQL.dependencies,
        "task",
        "task_id",
    ),
    Mirror(
        "raw_agents",
        {
            "id": "VARCHAR",
            "agent": "VARCHAR",
            "name": "VARCHAR",
            "status": "VARCHAR",
            "persona": "VARCHAR",
            "role": "VARCHAR",
            "tool": "VARCHAR",
            "worktree": "VARCHAR",
            "parent": "VARCHAR",
            "registered_us": "BIGINT",
        },
        SQL.agents,
        "agent",
        "id",
    ),
    Mirror(
        "raw_approvals",
        {
            "id": "BIGINT",
            "kind": "VARCHAR",
            "status": "VARCHAR",
            "requester": "VARCHAR",
            "subject": "VARCHAR",
            "created_us": "BIGINT",
            "decided_us": "BIGINT",
            "decided_by": "VARCHAR",
            "reason": "VARCHAR",
        },
        SQL.approvals,
        "approval",
        "id",
    ),
    Mirror(
        "raw_worktrees",
        {
            "name": "VARCHAR",
            "branch": "VARCHAR",
            "target": "VARCHAR",
            "status": "VARCHAR",
            "commit_id": "VARCHAR",
            "created_by": "VARCHAR",
            "created_us": "BIGINT",
            "closed_us": "BIGINT",
        },
        SQL.worktrees,
        "worktree",
        "name",
    ),
)
EVENT_COLUMNS = {
    "id": "BIGINT",
    "at_us": "BIGINT",
    "kind": "VARCHAR",
    "actor": "VARCHAR",
    "subject": "VARCHAR",
    "session": "VARCHAR",
    "data": "VARCHAR",
}


@dataclass(frozen=True)
class News:
    """What was read from the store: rows by table, and the keys they replace (None: all of them)."""

    events: list[Row]
    rows: dict[str, list[Row]]
    keys: dict[str, list[str]] | None
    cursor: int


class Live:
    """One DuckDB database in memory that follows one store. Questions may come from any thread."""

    def __init__(self) -> None:
        self._db: duckdb.DuckDBPyConnection | None = None
        self._cursor = 0
        self._lock = threading.Lock()

    def answer(self, news: News, query: str) -> duckdb.DuckDBPyRelation:
        """Take in what is new and run a query, which may not change anything; its rows stay as they are now.

        Raises:
            BadInput: ``SQL_FAILED``, with DuckDB's explanation.
        """
        import duckdb

        with self._lock:
            db = self._connection()
            self._take_in(db, news)
            reader = db.cursor()
            try:
                reader.execute("BEGIN TRANSACTION READ ONLY")
                asked = reader.sql(query)
                found = None if asked is None else asked.materialize()
            except duckdb.Error as error:
                raise BadInput("SQL_FAILED", str(error)) from None
            finally:
                with suppress(duckdb.Error):
                    reader.execute("ROLLBACK")
        if found is None:
            raise BadInput("SQL_FAILED", "The statement returns no rows. Ask with SELECT.")
        return found

    @property
    def cursor(self) -> int:
        """The last event that has been taken in."""
        return self._cursor

    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._db is None:
            import duckdb

            db = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
            for mirror in MIRRORS:
                db.execute(_create(mirror.table, mirror.columns))
            db.execute(_create("raw_events", EVENT_COLUMNS))
            db.execute(VIEWS.read_text("utf-8"))
            self._db = db
        return self._db

    def _take_in(self, db: duckdb.DuckDBPyConnection, news: News) -> None:
        if news.cursor <= self._cursor:
            return
        db.execute("BEGIN")
        try:
            self._replace(db, news)
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
        self._cursor = news.cursor

    def _replace(self, db: duckdb.DuckDBPyConnection, news: News) -> None:
        _insert(db, "raw_events", EVENT_COLUMNS, [e for e in news.events if e["id"] > self._cursor])
        for mirror in MIRRORS:
            if news.keys is None:
                db.execute(f"DELETE FROM {mirror.table}")
            elif keys := news.keys.get(mirror.noun):
                stale = f"DELETE FROM {mirror.table} WHERE CAST({mirror.key} AS VARCHAR) IN (SELECT unnest(?))"
                db.execute(stale, [keys])
            _insert(db, mirror.table, mirror.columns, news.rows[mirror.table])


def read_news(tx: Reader, cursor: int) -> News:
    """What changed in the store after an event, in one consistent view."""
    last = last_event_id(tx)
    events: list[Row] = []
    while cursor < last and (page := tx.all(SQL.events, after=events[-1]["id"] if events else cursor, limit=PAGE)):
        events.extend(page)
    keys = None if cursor == 0 else _changed(events)
    rows = {mirror.table: _rows(tx, mirror, keys) for mirror in MIRRORS}
    return News(events, rows, keys, last)


def _changed(events: Sequence[Row]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for event in events:
        noun, _, key = event["subject"].partition(":")
        found.setdefault(noun, {})[key] = None
        if noun == "plan":
            made = json.loads(event["data"]).get("tasks", {})
            found.setdefault("task", {}).update(dict.fromkeys(map(str, made.values())))
    return {noun: list(keys) for noun, keys in found.items()}


def _rows(tx: Reader, mirror: Mirror, keys: dict[str, list[str]] | None) -> list[Row]:
    if keys is None:
        return tx.all(mirror.rows, keys=None)
    wanted = keys.get(mirror.noun)
    return tx.all(mirror.rows, keys=json.dumps(wanted)) if wanted else []


def _create(table: str, columns: dict[str, str]) -> str:
    return f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})"


def _insert(db: duckdb.DuckDBPyConnection, table: str, columns: dict[str, str], rows: Sequence[Row]) -> None:
    """Hand rows over as one JSON text, which DuckDB parses far faster than it binds values."""
    if not rows:
        return
    shape = json.dumps([columns])
    text = json.dumps([dict(row) for row in rows])
    db.execute(f"INSERT INTO {table} SELECT unnest(from_json(?, ?), recursive := true)", [text, shape])


async def refresh(live: Live, store: Store) -> News:
    """Read what `live` has not taken in yet."""
    return await store.read(lambda tx: read_news(tx, live.cursor))


def ask(settings: Settings, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Answer one question from a process that does not serve: column names and rows.

    Raises:
        BadInput: ``SQL_FAILED``. Unavailable, Conflict: see `open_store`.
    """
    from workbench.store.sqlite import open_store

    store = open_store(settings.database)
    try:
        live = Live()
        found = live.answer(asyncio.run(refresh(live, store)), query)
        return list(found.columns), found.fetchall()
    finally:
        store.close()
