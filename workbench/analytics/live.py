"""A DuckDB copy of the live store, kept up to date by event id.

The first query loads all rows; later ones load only the rows that events since then are about. The store is
read through its own library: a second SQLite library in the process would break its file locks, so no DuckDB
extension opens the file.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench import state_directory
from workbench.analytics import mirrors, views
from workbench.analytics.mirrors import EVENT_COLUMNS, MIRRORS, SQL, Mirror
from workbench.errors import BadInput, Refused
from workbench.settings import Settings
from workbench.store.base import Reader, Row, Store
from workbench.store.feed import PAGE, last_event_id

if TYPE_CHECKING:
    import duckdb
    import pandas

NO_EXTENSIONS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
NO_FILES: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "lock_configuration": "true",  # settings such as profiling_output write files as well
}
FILES_ADVICE = "To let the query read and write files, use --files, or in Python wb.sql(…, files=True)."


@dataclass(frozen=True)
class Update:
    """Data read from the store: events, rows by table, and the keys that they replace, by noun (None: all)."""

    events: list[Row]
    rows: dict[str, list[Row]]
    keys: dict[str, list[str]] | None
    cursor: int


class Live:
    """An in-memory DuckDB database that follows one store; callable from any thread.

    Args:
        files: queries may read and write files and load extensions; otherwise DuckDB refuses both.
    """

    def __init__(self, files: bool = False) -> None:
        self._files = files
        self._db: duckdb.DuckDBPyConnection | None = None
        self._cursor = 0
        self._lock = threading.Lock()

    def answer(self, update: Update, query: str, frames: Mapping[str, object] | None = None) -> duckdb.DuckDBPyRelation:
        """Apply an update and run a query, which may not change the tables; its rows are a snapshot.

        Args:
            frames: DataFrames that the query may use as tables, by name; Workbench's own tables take precedence.

        Raises:
            BadInput: ``SQL_FAILED``, with DuckDB's explanation. Refused: ``FILES_NOT_ALLOWED``.
        """
        import duckdb

        with self._lock:
            db = self._connection()
            self._apply(db, update)
            reader = db.cursor()
            try:
                for name, frame in _mentioned(db, query, frames or {}):
                    reader.register(name, frame)
                reader.execute("BEGIN TRANSACTION READ ONLY")
                relation = reader.sql(query)
                found = None if relation is None else relation.materialize()
            except duckdb.PermissionException as error:
                raise Refused("FILES_NOT_ALLOWED", f"{error}\n{FILES_ADVICE}") from None
            except duckdb.Error as error:
                raise BadInput("SQL_FAILED", str(error)) from None
            finally:
                with suppress(duckdb.Error):
                    reader.execute("ROLLBACK")
        if found is None:
            raise BadInput("SQL_FAILED", "The statement returns no rows. Use SELECT.")
        return found

    @property
    def cursor(self) -> int:
        """The id of the last event that was applied."""
        return self._cursor

    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._db is None:
            import duckdb

            db = duckdb.connect(config=NO_EXTENSIONS if self._files else NO_EXTENSIONS | NO_FILES)
            mirrors.create(db)
            views.create(db)
            self._db = db
        return self._db

    def _apply(self, db: duckdb.DuckDBPyConnection, update: Update) -> None:
        if update.cursor <= self._cursor:
            return
        db.execute("BEGIN")
        try:
            self._replace(db, update)
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
        self._cursor = update.cursor

    def _replace(self, db: duckdb.DuckDBPyConnection, update: Update) -> None:
        _insert(db, "raw_events", EVENT_COLUMNS, [e for e in update.events if e["id"] > self._cursor])
        for mirror in MIRRORS:
            if update.keys is None:
                db.execute(f"DELETE FROM {mirror.table}")
            elif keys := update.keys.get(mirror.noun):
                stale = f"DELETE FROM {mirror.table} WHERE CAST({mirror.key} AS VARCHAR) IN (SELECT unnest(?))"
                db.execute(stale, [keys])
            _insert(db, mirror.table, mirror.columns, update.rows[mirror.table])


def read_update(tx: Reader, cursor: int) -> Update:
    """The changes in the store after an event, in one snapshot."""
    last = last_event_id(tx)
    events: list[Row] = []
    while cursor < last and (page := tx.all(SQL.events, after=events[-1]["id"] if events else cursor, limit=PAGE)):
        events.extend(page)
    keys = None if cursor == 0 else _changed(events)
    rows = {mirror.table: _rows(tx, mirror, keys) for mirror in MIRRORS}
    return Update(events, rows, keys, last)


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


def _insert(db: duckdb.DuckDBPyConnection, table: str, columns: dict[str, str], rows: Sequence[Row]) -> None:
    """Insert rows as one JSON text, which DuckDB parses far faster than it binds values."""
    if not rows:
        return
    shape = json.dumps([columns])
    text = json.dumps([dict(row) for row in rows])
    db.execute(f"INSERT INTO {table} SELECT unnest(from_json(?, ?), recursive := true)", [text, shape])


def _mentioned(db: duckdb.DuckDBPyConnection, query: str, frames: Mapping[str, object]) -> list[tuple[str, object]]:
    """The DataFrames that a query mentions, without those that have the name of a table or view."""
    words = set(re.findall(r"\w+", query.lower()))
    tables = {name for (name,) in db.execute("SELECT lower(table_name) FROM information_schema.tables").fetchall()}
    return [
        (name, frame)
        for name, frame in frames.items()
        if name.lower() in words - tables and any(kind.__name__ == "DataFrame" for kind in type(frame).__mro__)
    ]


def as_frame(found: duckdb.DuckDBPyRelation) -> pandas.DataFrame:
    """The rows of an answer. Times have a time zone, that of the computer."""
    with warnings.catch_warnings():
        # DuckDB calls `DataFrame.drop` as pandas 4 no longer allows.
        warnings.filterwarnings("ignore", "The inplace keyword in DataFrame.drop", DeprecationWarning)
        frame: pandas.DataFrame = found.df()
    return frame


async def refresh(live: Live, store: Store) -> Update:
    """Read what `live` has not applied yet."""
    return await store.read(lambda tx: read_update(tx, live.cursor))


def read_closed(live: Live, settings: Settings) -> Update:
    """Read what `live` has not applied yet, without a server. Call it in a thread that has no event loop.

    Raises:
        Unavailable, Conflict: see `open_store`. Refused: see `state_directory.check`.
    """
    from workbench.store.sqlite import open_store

    with state_directory.database(settings) as path, closing(open_store(path)) as store:
        return asyncio.run(refresh(live, store))


def ask(settings: Settings, query: str, files: bool = False) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run one query in a process that is not the server: column names and rows. See `Live`.

    Raises:
        BadInput: ``SQL_FAILED``. Refused: ``FILES_NOT_ALLOWED``. Others: see `read_closed`.
    """
    live = Live(files)
    found = live.answer(read_closed(live, settings), query)
    return list(found.columns), found.fetchall()
