"""Migrations: numbered `.sql` scripts, applied in order, each in a transaction, recorded by SHA-256 (spec 3).

A script headed ``-- rerunnable`` is run again, with a warning, when it has changed. Any other changed script is
refused as drift, and so is a database with scripts that this program does not know.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.store.base import Reader, Row
from workbench.store.queries import Dialect, Query, beside, render

SQL = beside(__file__)
MIGRATIONS = Path(__file__).parent / "migrations"

_TEXT = re.compile(r"(?<!AS )\bTEXT\b")
"""A column of text. On PostgreSQL it is sorted by code points, as SQLite does."""

log = logging.getLogger(__name__)


class Database(Protocol):
    """A connection to a database that is migrated."""

    @property
    def dialect(self) -> Dialect:
        """The SQL it takes."""
        ...

    @property
    def error(self) -> type[Exception]:
        """What it raises for a statement that fails."""
        ...

    def execute(self, statement: str) -> None:
        """Execute a statement without parameters."""
        ...

    def query(self, query: Query, values: Mapping[str, Any] = ..., /) -> list[tuple[Any, ...]]:
        """Execute a query; its rows."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """A transaction while which nobody else migrates or writes."""
        ...


class _Sqlite:
    """SQLite's."""

    dialect = Dialect.SQLITE
    error = sqlite3.Error

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def execute(self, statement: str) -> None:
        self._db.execute(statement)

    def query(self, query: Query, values: Mapping[str, Any] = {}, /) -> list[tuple[Any, ...]]:
        return self._db.execute(query.sqlite, values).fetchall()

    @contextmanager
    def alone(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


@dataclass(frozen=True)
class Script:
    """One migration."""

    name: str
    text: str

    @cached_property
    def sha256(self) -> str:
        """Hash of the text with LF line ends, so that a checkout's line ends do not matter."""
        return hashlib.sha256(self.text.replace("\r\n", "\n").encode()).hexdigest()

    @property
    def rerunnable(self) -> bool:
        """Whether the script is run again when it has changed."""
        return self.text.startswith("-- rerunnable")

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """The single statements (`executescript` would commit before it starts)."""
        pending = ""
        text = render(self.text, dialect)
        if dialect is Dialect.POSTGRES:
            text = _TEXT.sub('TEXT COLLATE "C"', text)
        for line in text.splitlines(keepends=True):
            pending += line
            if sqlite3.complete_statement(pending):
                yield pending
                pending = ""
        if pending.strip():
            yield pending


@cache
def scripts() -> tuple[Script, ...]:
    """The shipped migrations, in order of their numbers; read once, as each store that is opened compares them."""
    return read_scripts(MIGRATIONS)


def read_scripts(directory: Path) -> tuple[Script, ...]:
    """The migrations in a directory, in order of their numbers."""
    return tuple(Script(path.stem, path.read_text("utf-8")) for path in sorted(directory.glob("*.sql")))


def applied_migrations(tx: Reader) -> list[Row]:
    """Every run of a script, oldest first: its name, hash, time, duration, success and reason."""
    return tx.all(SQL.history)


def migrate(db: sqlite3.Connection | Database, wanted: Sequence[Script], now: int) -> list[str]:
    """Bring a database up to date; the names of the scripts that were run.

    Raises:
        Conflict: ``MIGRATION_DRIFT`` (an applied script was changed), ``MIGRATION_UNKNOWN``
            (the database is newer than this program). Nothing was changed.
        Unavailable: ``MIGRATION_FAILED``. The script left nothing behind; the failure is recorded.
    """
    database = _database(db)
    if not _find_pending(_applied_hashes(database), wanted):
        return []
    with database.alone():
        database.execute(render(SQL.create_history.text, database.dialect))
    names = []
    while jobs := _find_pending(_applied_hashes(database), wanted):
        if _run_one(database, jobs[0], now):
            names.append(jobs[0][0].name)
    return names


def require_current(db: sqlite3.Connection | Database, store: str = "The store", project: Path | None = None) -> None:
    """Refuse a store to which a script was not applied yet. Changes nothing.

    Args:
        store: what it is called.
        project: the directory of its project, if that is known.

    Raises:
        Conflict: ``PROJECT_OUTDATED``; see `migrate`.
    """
    if _find_pending(_applied_hashes(_database(db)), scripts()):
        option = f" --project {project}" if project else ""
        raise Conflict(
            "PROJECT_OUTDATED",
            f"{store} was last used with an older Workbench. Update it in its project: `workbench migrate{option}`.",
        )


def extent(db: sqlite3.Connection | Database) -> tuple[int, str | None]:
    """How many migrations were applied, and the name of the latest."""
    database = _database(db)
    ((count, latest),) = database.query(SQL.extent) if database.query(SQL.history_exists) else [(0, None)]
    return count, latest


def created_at(db: sqlite3.Connection | Database) -> int | None:
    """When the store in a database was created, microseconds UTC; None if there is none."""
    database = _database(db)
    rows = database.query(SQL.created) if database.query(SQL.history_exists) else []
    return rows[0][0] if rows else None


def _database(db: sqlite3.Connection | Database) -> Database:
    return _Sqlite(db) if isinstance(db, sqlite3.Connection) else db


def _applied_hashes(db: Database) -> dict[str, str]:
    """The hash each script had when it last succeeded."""
    return dict(db.query(SQL.applied)) if db.query(SQL.history_exists) else {}


def _find_pending(applied: dict[str, str], wanted: Sequence[Script]) -> list[tuple[Script, str]]:
    """Scripts to run, each with the reason."""
    if unknown := sorted(set(applied) - {script.name for script in wanted}):
        raise Conflict(
            "MIGRATION_UNKNOWN",
            f"The database was made by a newer Workbench ({', '.join(unknown)}). Upgrade Workbench.",
            migrations=unknown,
        )
    jobs = []
    for script in wanted:
        applied_hash = applied.get(script.name)
        if applied_hash is None:
            jobs.append((script, "New migration"))
        elif applied_hash != script.sha256:
            jobs.append((script, _reason_to_rerun(script)))
    return jobs


def _reason_to_rerun(script: Script) -> str:
    if not script.rerunnable:
        raise Conflict(
            "MIGRATION_DRIFT",
            f"Migration {script.name} was changed after it was applied. Restore the script that was "
            "applied, and put the change into a new one.",
            migration=script.name,
        )
    log.warning("migration %s was modified and is run again", script.name)
    return "Script modified"


def _run_one(db: Database, job: tuple[Script, str], now: int) -> bool:
    """Run one script, unless another process was faster; record the outcome."""
    script, reason = job
    started_at = time.perf_counter_ns()

    def record(success: bool, why: str) -> None:
        elapsed = (time.perf_counter_ns() - started_at) // 1_000_000
        values = {"name": script.name, "hash": script.sha256, "at": now, "elapsed": elapsed}
        db.query(SQL.record, {**values, "success": int(success), "reason": why})

    try:
        with db.alone():
            if _applied_hashes(db).get(script.name) == script.sha256:
                return False
            for statement in script.statements(db.dialect):
                db.execute(statement)
            record(True, reason)
    except db.error as error:
        with db.alone():
            record(False, str(error))
        raise _migration_error(script, error) from error
    return True


def _migration_error(script: Script, error: Exception) -> WorkbenchError:
    return Unavailable(
        "MIGRATION_FAILED",
        f"Migration {script.name} failed and was rolled back: {error}. The database is as it was.",
        migration=script.name,
    )
