"""Migrations: numbered `.sql` scripts, applied in order, each in a transaction, recorded by SHA-256 (spec 3).

A script headed ``-- rerunnable`` is run again, with a warning, when it has changed. Any other changed script is
refused as drift, and so is a database with scripts that this program does not know.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import Conflict, Unavailable, WorkbenchError
from workbench.store.base import Reader, Row
from workbench.store.queries import Dialect, beside, render

SQL = beside(__file__)
MIGRATIONS = Path(__file__).parent / "migrations"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Script:
    """One migration."""

    name: str
    text: str

    @property
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
        for line in render(self.text, dialect).splitlines(keepends=True):
            pending += line
            if sqlite3.complete_statement(pending):
                yield pending
                pending = ""
        if pending.strip():
            yield pending


def scripts(directory: Path = MIGRATIONS) -> list[Script]:
    """The shipped migrations, in order of their numbers."""
    return [Script(path.stem, path.read_text("utf-8")) for path in sorted(directory.glob("*.sql"))]


def applied_migrations(tx: Reader) -> list[Row]:
    """Every run of a script, oldest first: its name, hash, time, duration, success and reason."""
    return tx.all(SQL.history)


def migrate(db: sqlite3.Connection, wanted: Sequence[Script], now: int) -> list[str]:
    """Bring a database up to date; the names of the scripts that were run.

    Raises:
        Conflict: ``MIGRATION_DRIFT`` (an applied script was changed), ``MIGRATION_UNKNOWN``
            (the database is newer than this program). Nothing was changed.
        Unavailable: ``MIGRATION_FAILED``. The script left nothing behind; the failure is recorded.
    """
    if not _find_pending(_applied_hashes(db), wanted):
        return []
    with _transaction(db):
        db.execute(SQL.create_history.sqlite)
    names = []
    while jobs := _find_pending(_applied_hashes(db), wanted):
        if _run_one(db, jobs[0], now):
            names.append(jobs[0][0].name)
    return names


def is_current(db: sqlite3.Connection, wanted: Sequence[Script]) -> bool:
    """Whether every script was applied. Changes nothing.

    Raises:
        Conflict: see `migrate`.
    """
    return not _find_pending(_applied_hashes(db), wanted)


def _applied_hashes(db: sqlite3.Connection) -> dict[str, str]:
    """The hash each script had when it last succeeded."""
    if db.execute(SQL.history_exists.sqlite).fetchone() is None:
        return {}
    return dict(db.execute(SQL.applied.sqlite).fetchall())


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


def _run_one(db: sqlite3.Connection, job: tuple[Script, str], now: int) -> bool:
    """Run one script, unless another process was faster; record the outcome."""
    script, reason = job
    started_at = time.perf_counter_ns()

    def record(success: bool, why: str) -> None:
        elapsed = (time.perf_counter_ns() - started_at) // 1_000_000
        values = {"name": script.name, "hash": script.sha256, "at": now, "elapsed": elapsed}
        db.execute(SQL.record.sqlite, {**values, "success": int(success), "reason": why})

    try:
        with _transaction(db):
            if _applied_hashes(db).get(script.name) == script.sha256:
                return False
            for statement in script.statements(Dialect.SQLITE):
                db.execute(statement)
            record(True, reason)
    except sqlite3.Error as error:
        with _transaction(db):
            record(False, str(error))
        raise _migration_error(script, error) from error
    return True


def _migration_error(script: Script, error: sqlite3.Error) -> WorkbenchError:
    return Unavailable(
        "MIGRATION_FAILED",
        f"Migration {script.name} failed and was rolled back: {error}. The database is as it was.",
        migration=script.name,
    )


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
