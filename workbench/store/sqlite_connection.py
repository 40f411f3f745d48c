"""Connections to the database file.

Only the store may open that file, and only through the standard library's SQLite: a second SQLite library in the
process breaks the file locks of the first.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from workbench.store.queries import Query

LOG_BYTES = 8 * 1024 * 1024
"""After a checkpoint the log is overwritten in place, which is far cheaper than letting its file grow again. If long
reads have made it larger than this, it is truncated."""
LOCK_SECONDS = 2.0
"""How long SQLite itself waits for programs that do not use the fence."""


class SqliteConnection(sqlite3.Connection):
    """A connection that caches the column names of its statements, because asking each time is slow."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._columns: dict[str, tuple[str, ...]] = {}

    def columns(self, query: Query, cursor: sqlite3.Cursor) -> tuple[str, ...]:
        """The column names of a cursor; not cached for `*`, as another process may migrate the table."""
        names = self._columns.get(query.sqlite)
        if names is None:
            names = tuple(column[0] for column in cursor.description)
            if query.names_its_columns:
                self._columns[query.sqlite] = names
        return names


def connect(path: Path) -> SqliteConnection:
    """Open a connection with the settings that all connections share."""
    db = sqlite3.connect(
        path,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        timeout=LOCK_SECONDS,
        factory=SqliteConnection,
    )
    try:
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "wal_autocheckpoint = 0",  # only the writer checkpoints, within the fence
            f"journal_size_limit = {LOG_BYTES}",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "secure_delete = OFF",
            "cache_size = -65536",
        ):
            db.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        db.close()
        raise
    return db
