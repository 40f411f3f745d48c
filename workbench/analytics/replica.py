"""A DuckDB database in memory that has a copy of the store's tables, and the views over them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.analytics import mirrors, views
from workbench.analytics.changes import START, Position, Rows, Update
from workbench.analytics.mirrors import EVENT_COLUMNS, MIRRORS, NUMBERED, Mirror, Numbered

if TYPE_CHECKING:
    import duckdb

NO_EXTENSIONS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
NO_FILES = ("enable_external_access = false", "lock_configuration = true")
"""The second because settings such as profiling_output write files as well."""


MEMORY = "300MB"
"""What a database with a scratch directory may use, by DuckDB's own count; the process needs somewhat more."""


class Replica:
    """A copy of a store; callable from any thread.

    Args:
        files: queries may read and write files and load extensions; otherwise DuckDB refuses both.
        scratch: a directory for what does not fit into little memory; None: all of it is in memory.
    """

    def __init__(self, files: bool = False, scratch: Path | None = None) -> None:
        self._files = files
        self._scratch = scratch
        self._db: duckdb.DuckDBPyConnection | None = None
        self._position = START
        self._lock = threading.Lock()
        self.generation = 0
        """Changes when the copy begins anew: connections from before then have an old one."""

    @property
    def position(self) -> Position:
        """How far it follows the store."""
        return self._position

    def connection(self) -> duckdb.DuckDBPyConnection:
        """A new connection to the database."""
        with self._lock:
            return self._database().cursor()

    def reset(self, unfit: Position) -> None:
        """Forget everything, unless the copy is no longer at this position. Open connections keep what they have."""
        with self._lock:
            if self._position == unfit:
                self._db, self._position = None, START
                self.generation += 1

    def fill(self, load: Callable[[duckdb.DuckDBPyConnection], None], position: Position) -> None:
        """Have the empty tables filled up to a position, unless there is something in them. The load may read files.

        Raises:
            Exception: what the load raises; the copy is then empty.
        """
        with self._lock:
            if self._position == START:
                db = self._created()
                try:
                    load(db)
                    mirrors.mask(db)
                except BaseException:
                    db.close()
                    raise
                self._db, self._position = self._restricted(db), replace(position, newest=mirrors.newest(db))

    def apply(self, update: Update) -> None:
        """Bring the copy to a later position."""
        with self._lock:
            if _order(update.position) < _order(self._position) or update.position == self._position:
                return
            db = self._database()
            db.execute("BEGIN")
            try:
                self._replace(db, update)
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
            arrived = update.position if update.is_last else self._position  # the last page has all numbered rows
            self._position = replace(update.position, newest=arrived.newest)

    def close(self) -> None:
        """Close the database; connections to it have to be closed as well."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db, self._position = None, START

    def _replace(self, db: duckdb.DuckDBPyConnection, update: Update) -> None:
        events = [event for event in update.events if event[0] > self._position.cursor]
        insert(db, "raw_events", EVENT_COLUMNS, events)
        if not update.is_last:
            return
        for mirror in MIRRORS:
            _delete(db, mirror, mirror.key, _keys(update, mirror.noun))
            _delete(db, mirror, mirror.owner, _keys(update, mirror.deleted))
            insert(db, mirror.table, mirror.columns, _masked(mirror, update.rows[mirror.table]))
        for numbered in NUMBERED:
            anew = _keys(update, numbered.restart)
            _delete(db, numbered, numbered.key, anew)
            news = _newer(numbered, update, self._position, anew or ())
            insert(db, numbered.table, numbered.columns, news, numbered.unique)

    def _database(self) -> duckdb.DuckDBPyConnection:
        if self._db is None:
            self._db = self._restricted(self._created())
        return self._db

    def _created(self) -> duckdb.DuckDBPyConnection:
        """An empty database with all tables and views."""
        import duckdb

        limits = {} if self._scratch is None else {"memory_limit": MEMORY, "temp_directory": str(self._scratch)}
        db = duckdb.connect(config=NO_EXTENSIONS | limits)
        mirrors.create(db)
        views.create(db)
        return db

    def _restricted(self, db: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        for setting in () if self._files else NO_FILES:
            db.execute(f"SET {setting}")
        return db


class Catalogue(Replica):
    """A copy that is a catalogue, in memory, of the database of another copy: a query may use both.

    Args:
        name: of the catalogue.
        database: makes a connection to that database. If the database begins anew, so must this.
    """

    def __init__(self, name: str, database: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        super().__init__()
        self.name = name
        self._connect = database

    def close(self) -> None:
        """Remove the catalogue."""
        super().close()
        with self._connect() as db:
            detached(db, self.name)

    def _created(self) -> duckdb.DuckDBPyConnection:
        """The catalogue, with all tables and views, empty."""
        db = attached(self._connect(), self.name)
        mirrors.create(db)
        views.create(db)
        return db

    def _restricted(self, db: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """The connection as it is: the database is restricted."""
        return db


def attached(db: duckdb.DuckDBPyConnection, name: str) -> duckdb.DuckDBPyConnection:
    """A connection that uses a new, empty catalogue in memory, which takes the place of one of the same name."""
    detached(db, name)
    db.execute(f"ATTACH ':memory:' AS \"{name}\"")
    return db.execute(f'USE "{name}"')


def detached(db: duckdb.DuckDBPyConnection, name: str) -> None:
    """Remove a catalogue from the database of a connection, if it is there."""
    db.execute(f'DETACH DATABASE IF EXISTS "{name}"')


def _order(position: Position) -> tuple[int, ...]:
    """Which of two positions of a copy is later."""
    return position.cursor, *(position.newest.get(mirror.table, 0) for mirror in NUMBERED)


def _newer(mirror: Numbered, update: Update, position: Position, anew: Collection[str]) -> Rows:
    """The rows of an update that a copy at a position lacks: this may be later than the position it was read for."""
    rows = update.rows[mirror.table]
    if update.keys is None:
        return rows
    newest, key = position.newest.get(mirror.table, 0), list(mirror.columns).index(mirror.key) if anew else 0
    return [row for row in rows if row[0] > newest or (anew and str(row[key]) in anew)]


def _masked(mirror: Mirror, rows: Rows) -> Rows:
    """The rows with masks in place of secrets in columns that the store has as they were given."""
    for column, masked in mirror.masks.items():
        at = list(mirror.columns).index(column)
        rows = [row if row[at] is None else (*row[:at], masked(row[at]), *row[at + 1 :]) for row in rows]
    return rows


def insert(
    db: duckdb.DuckDBPyConnection, table: str, columns: Mapping[str, str], rows: Rows, unique: Sequence[str] = ()
) -> None:
    """Insert rows as arrays of NumPy, which DuckDB reads far faster than it binds values.

    Args:
        unique: columns; older rows with the same values in all of these are removed.
    """
    import numpy

    if not rows:
        return
    integers = {name for name, kind in columns.items() if kind == "BIGINT"}
    arrays = {
        name: numpy.array(values, dtype="int64" if name in integers and None not in values else object)
        for name, values in zip(columns, zip(*rows, strict=True), strict=True)
    }
    casts = ", ".join(f"CAST({name} AS {kind})" for name, kind in columns.items())
    with _registered(db, "arriving", arrays):
        if unique:
            same = " AND ".join(f"{table}.{name} = arriving.{name}" for name in unique)
            db.execute(f"DELETE FROM {table} USING arriving WHERE {same}")
        db.execute(f"INSERT INTO {table} SELECT {casts} FROM arriving")


def _keys(update: Update, noun: str | None) -> Collection[str] | None:
    """The keys that an update has for a noun or a kind of event; None: all rows are replaced."""
    return None if update.keys is None else update.keys.get(noun or "", ())


def _delete(
    db: duckdb.DuckDBPyConnection, mirror: Mirror | Numbered, column: str, keys: Collection[str] | None
) -> None:
    """Delete the rows with one of the keys in a column; None: all rows."""
    import numpy

    if keys is None:
        db.execute(f"DELETE FROM {mirror.table}")
    elif keys:
        cast = f"TRY_CAST(key AS {mirror.columns[column]})"
        with _registered(db, "leaving", {"key": numpy.array(sorted(keys), dtype=object)}):
            db.execute(f"DELETE FROM {mirror.table} WHERE {column} IN (SELECT {cast} FROM leaving)")


@contextmanager
def _registered(db: duckdb.DuckDBPyConnection, name: str, arrays: Mapping[str, Any]) -> Iterator[None]:
    """Have arrays as a table within a transaction. After an error, only the end of the transaction removes it."""
    db.register(name, arrays)
    yield
    db.unregister(name)
