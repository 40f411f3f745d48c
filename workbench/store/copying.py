"""Copies a whole store from SQLite to PostgreSQL or back, and compares two.

Every row is copied as it is, with its ids, and new ids go on after those. A copy is one transaction. What it has is
read back before that is committed, and compared with what was copied. Nobody writes to either store meanwhile.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from workbench.errors import BadInput, Conflict, Unavailable
from workbench.model import wall_clock
from workbench.store.backups import hold_closed, new_backup, put, remove
from workbench.store.contents import Columns, Contents, PostgresContents, Rows, SqliteContents
from workbench.store.examination import read_only, require_whole, store_error
from workbench.store.migrate import migrate, require_current, scripts
from workbench.store.queries import beside
from workbench.store.server_connection import connected
from workbench.store.sqlite_connection import SqliteConnection, connect
from workbench.system.atomic_file import sync

if TYPE_CHECKING:
    from workbench.store.postgres_connection import PostgresConnection

T = TypeVar("T")

SQL = beside(__file__)
HASH_BYTES = 16
LEAVING_SECONDS = 5.0
"""How long connections may take to end that were closed just now."""


class RowHash:
    """The hash of a table's rows, whatever their order.

    A row is hashed as Python writes it: integers, floats to the last bit, texts, bytes and None are told apart.
    """

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0

    def add(self, rows: Rows) -> None:
        """Add rows."""
        self.count += len(rows)
        for row in rows:
            self._sum += int.from_bytes(blake2b(repr(row).encode(), digest_size=HASH_BYTES).digest(), "little")

    def through(self, batches: Iterable[Rows]) -> Iterator[Rows]:
        """Rows as they are, which are added on the way."""
        for rows in batches:
            self.add(rows)
            yield rows

    @property
    def hex(self) -> str:
        """The hash, as a text."""
        return f"{self._sum % (1 << 8 * HASH_BYTES):0{2 * HASH_BYTES}x}"


@dataclass(frozen=True)
class ComparedTable:
    """A table in two stores: how many rows it has in each, and the hash of these."""

    table: str
    rows: int
    hash: str
    other_rows: int
    other_hash: str

    @property
    def is_equal(self) -> bool:
        """Whether it has the same rows in both."""
        return (self.rows, self.hash) == (self.other_rows, self.other_hash)


def copy_to_postgres(store: Path, address: str) -> list[ComparedTable]:
    """Copy a store from SQLite to an empty database of PostgreSQL, unless that has a copy with equal rows. Blocks.

    Args:
        address: see `postgres.open_store`.

    Raises:
        Conflict: ``STORE_IN_USE``, ``COPY_NOT_EMPTY``, ``PROJECT_OUTDATED``. Unavailable: ``COPY_DIFFERS``, or either
            store cannot be opened. BadInput: ``NOT_COPYABLE``.
    """

    def copy_from(source: SqliteContents) -> list[ComparedTable]:
        with _opened(address) as database:
            _require_unused(database)
            if _last_event(database):  # it stays as it is, whosever it is
                require_current(database, "The store in the database")
            migrate(database, scripts(), wall_clock())
            with database.alone():
                _require_unused(database)
                target = PostgresContents(database)
                return _compared_again(source, target, database) or copy(source, target)

    return _with_sqlite(store, copy_from)


def copy_from_postgres(address: str, store: Path) -> tuple[list[ComparedTable], Path | None]:
    """Copy a store from PostgreSQL to SQLite, in place of the one that is there. Blocks.

    Returns:
        The tables, and the directory that has what was there before.

    Raises:
        WorkbenchError: see `copy_to_postgres`. Unavailable: ``RESTORE_FAILED``.
    """
    temporary = store.with_suffix(".copied")
    with hold_closed(store):
        remove(temporary)  # of a copy that was interrupted
        try:
            with _opened(address) as database, database.alone():
                _require_unused(database)
                require_current(database)
                compared = _fill(temporary, PostgresContents(database))
            return compared, put(temporary, store, wall_clock())
        except sqlite3.Error as error:
            raise store_error(temporary, error) from error
        finally:
            remove(temporary)


def back_up_postgres(address: str, store: Path) -> Path:
    """Copy a store from PostgreSQL, which may be used meanwhile, to a backup for SQLite; the path of that. Blocks.

    Args:
        store: the file that a store on SQLite would have; the backup is in `backups` beside it.

    Raises:
        WorkbenchError: see `copy_to_postgres`. Unavailable: ``BACKUP_FAILED``.
    """

    return new_backup(store, wall_clock(), lambda path: copy_as_file(address, path))


def copy_as_file(address: str, path: Path) -> None:
    """Copy a store from PostgreSQL, which may be used meanwhile, to a file of SQLite. Blocks.

    Raises:
        WorkbenchError: see `copy_to_postgres`.
    """
    with _opened(address) as database:
        require_current(database)
        database.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        _fill(path, PostgresContents(database))
        database.execute("COMMIT")


def hash_tables(store: Path) -> dict[str, tuple[int, str]]:
    """The count and the hash of the rows of each table in a file of SQLite; see `RowHash`. Blocks.

    Raises:
        sqlite3.Error: it cannot be read.
    """

    def hash_all(db: SqliteConnection) -> dict[str, tuple[int, str]]:
        contents = SqliteContents(db)
        hashes = {table: _hash(contents, table, columns) for table, columns in contents.columns.items()}
        return {table: (hashed.count, hashed.hex) for table, hashed in hashes.items()}

    return read_only(store, hash_all)


def compare_stores(store: Path, address: str) -> list[ComparedTable]:
    """Compare all rows of a store on SQLite with those of one on PostgreSQL. Changes nothing. Blocks.

    Raises:
        WorkbenchError: see `copy_to_postgres`.
    """

    def compare_with(source: SqliteContents) -> list[ComparedTable]:
        with _opened(address) as database:
            require_current(database)
            with database.alone():
                _require_unused(database)
                return compare(source, PostgresContents(database))

    return _with_sqlite(store, compare_with)


def copy(source: Contents, target: Contents) -> list[ComparedTable]:
    """Copy everything from one store to another, and compare them. Blocks.

    Raises:
        Unavailable: ``COPY_DIFFERS``. BadInput: ``NOT_COPYABLE``. Roll back what was done then.
    """
    columns = _common(source, target)
    target.clear(columns)
    hashes = {}
    for table, names in columns.items():
        hashes[table] = RowHash()
        target.fill(table, names, hashes[table].through(source.rows(table, names)))
    target.finish(source.last_ids())
    compared = [_compared(table, hashes[table], _hash(target, table, names)) for table, names in columns.items()]
    if wrong := [row.table for row in compared if not row.is_equal]:
        raise Unavailable(
            "COPY_DIFFERS", f"The copy of {', '.join(wrong)} is not equal to the original. Nothing was copied."
        )
    return compared


def compare(source: Contents, target: Contents) -> list[ComparedTable]:
    """Compare all rows of two stores. Blocks.

    Raises:
        BadInput: ``NOT_COPYABLE``.
    """
    tables = _common(source, target).items()
    return [_compared(table, _hash(source, table, names), _hash(target, table, names)) for table, names in tables]


def _hash(contents: Contents, table: str, columns: Sequence[str]) -> RowHash:
    hashed = RowHash()
    for rows in contents.rows(table, columns):
        hashed.add(rows)
    return hashed


def _compared(table: str, here: RowHash, there: RowHash) -> ComparedTable:
    return ComparedTable(table, here.count, here.hex, there.count, there.hex)


def _common(source: Contents, target: Contents) -> Columns:
    """The tables of both stores, which are the same; the columns in the order of the source."""
    if different := sorted(
        table
        for table in source.columns.keys() | target.columns.keys()
        if sorted(source.columns.get(table, ())) != sorted(target.columns.get(table, ()))
    ):
        raise BadInput("NOT_COPYABLE", f"The two stores have different tables: {', '.join(different)}.")
    return source.columns


def _with_sqlite(store: Path, question: Callable[[SqliteContents], T]) -> T:
    """The answer to a question about the contents of a store that nobody has open meanwhile."""

    def ask(db: SqliteConnection) -> T:
        require_current(db)
        return question(SqliteContents(db))

    with hold_closed(store):
        require_whole(store)
        try:
            return read_only(store, ask)
        except sqlite3.Error as error:
            raise store_error(store, error) from error


def _fill(path: Path, source: Contents) -> list[ComparedTable]:
    """Make a database with the content of a store, which only this user can read."""
    path.touch(mode=0o600)
    with closing(connect(path)) as db:
        migrate(db, scripts(), wall_clock())
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA synchronous = OFF")  # the whole file is synced at the end
        db.execute("BEGIN")
        compared = copy(source, SqliteContents(db))
        db.execute("COMMIT")
        db.execute("PRAGMA journal_mode = DELETE")
    sync(path)
    return compared


@contextmanager
def _opened(address: str) -> Iterator[PostgresConnection]:
    """A connection that may wait, within a transaction, for as long as SQLite takes."""
    with connected(address) as database:
        database.execute("SET idle_in_transaction_session_timeout = 0")
        yield database


def _require_unused(database: PostgresConnection) -> None:
    """Refuse a database that a server, a notebook or a command of Workbench has open."""
    until = time.monotonic() + LEAVING_SECONDS
    while (users := database.query(SQL.users)) and time.monotonic() < until:
        time.sleep(0.05)
        database.execute("SELECT pg_stat_clear_snapshot()")  # else a transaction sees its first look again
    if users:
        servers = database.query(SQL.servers) if database.query(SQL.has_servers) else []
        names = ", ".join(
            [f"the server {url} on {machine}" for url, machine in servers]
            or [f"process {pid} of PostgreSQL, from {place}" for pid, place in users[:3]]
        )
        raise Conflict(
            "STORE_IN_USE",
            f"The database is in use by Workbench ({names}). Stop the servers and the notebooks that use it.",
        )


def _compared_again(source: Contents, target: Contents, database: PostgresConnection) -> list[ComparedTable] | None:
    """The tables of a copy that was made before, and cut off after that; None if the database is empty.

    Raises:
        Conflict: ``COPY_NOT_EMPTY``: it has another store.
    """
    last = _last_event(database)
    if not last:
        return None
    if last == source.last_ids().get("events"):
        compared = compare(source, target)
        if all(table.is_equal for table in compared):
            return compared
    raise Conflict(
        "COPY_NOT_EMPTY",
        f"The database already has a store, with events up to {last:,}. Copy to an empty database: `createdb` makes "
        "one.",
    )


def _last_event(database: PostgresConnection) -> int:
    rows = database.query(SQL.last_event)
    return int(rows[0][0]) if rows else 0
