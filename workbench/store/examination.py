"""Examines whether a store is whole: SQLite checks its file, and its mark the content. Changes nothing."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from workbench.errors import Unavailable, WorkbenchError
from workbench.store.backups import newest_backup
from workbench.store.log_sync import log_of
from workbench.store.mark import StoreMark, lacking, mark_file, read_mark
from workbench.store.sqlite_connection import SqliteConnection
from workbench.store.sqlite_errors import storage_error

T = TypeVar("T")

STEPS = 20_000
"""How many steps SQLite runs between two checks of the time."""


def require_whole(store: Path, seconds: float | None = None, *, thorough: bool = True) -> bool:
    """Refuse a store that is damaged or lacks acknowledged events; whether all of it was checked. Blocks.

    A store that has never existed is not refused.

    Args:
        seconds: how long SQLite may look for damage; None: as long as it takes.
        thorough: have SQLite look for damage. Otherwise only the mark is compared, which takes a millisecond.

    Raises:
        Unavailable: ``STORE_CORRUPT``, ``STORE_INCOMPLETE``, ``STORE_UNREADABLE``, ``STORE_BUSY``.
    """
    mark = read_mark(store)  # before the store: what others write meanwhile is not missed
    if not require_there(store) or not store.is_file():  # of what is no file, SQLite says what is wrong
        return True

    def examine(db: SqliteConnection) -> bool:
        require_marked(store, db, mark)
        return not thorough or _check(store, db, seconds)

    try:
        return read_only(store, examine)
    except sqlite3.Error as error:
        raise store_error(store, error) from error


def require_there(store: Path) -> bool:
    """Whether there is a database; refuses one that has disappeared or been emptied.

    Raises:
        Unavailable: ``STORE_INCOMPLETE``.
    """
    try:
        size = store.stat().st_size
    except FileNotFoundError:
        size = None
    except OSError:  # SQLite says what is wrong
        return True
    if size:
        return True
    if mark_file(store).exists() or _size(log_of(store)):
        raise incomplete(store, "It is gone." if size is None else "It is an empty file.")
    return False


def require_marked(store: Path, db: sqlite3.Connection, mark: StoreMark | None) -> None:
    """Refuse a database that lacks the event of its mark.

    Raises:
        Unavailable: ``STORE_INCOMPLETE``.
    """
    if mark is not None and (lack := lacking(db, mark)) is not None:
        raise incomplete(store, lack)


def read_only(store: Path, question: Callable[[SqliteConnection], T]) -> T:
    """Run `question` on a consistent view of a database; may run it again.

    A database that no process has open has no log, and is read as immutable, because SQLite would otherwise create a
    log beside it; if a process opens it meanwhile, the answer is dropped.

    Raises:
        sqlite3.Error: the database cannot be read. OSError: it is gone.
    """
    while True:
        before = _file_state(store)
        try:
            answer = _answer(store, question, is_closed=before is not None)
        except Exception:
            if before is None or _file_state(store) == before:
                raise
            continue
        if before is None or _file_state(store) == before:
            return answer


def incomplete(store: Path, lack: str) -> WorkbenchError:
    """The error for a store that lacks acknowledged events."""
    return Unavailable(
        "STORE_INCOMPLETE",
        f"The store {store} is not the one that was last used here. {lack} Nothing was changed. {what_to_do(store)}",
        lacks=lack,
        backup=_shown_backup(store),
    )


def store_error(store: Path, error: sqlite3.Error) -> BaseException:
    """The coded error for an error of SQLite; for a damaged store, it tells what to do."""
    coded_error = storage_error(error)
    if coded_error is None or coded_error.code != "STORE_CORRUPT":
        return coded_error or error
    return corrupt(store, str(error))


def corrupt(store: Path, reason: str) -> WorkbenchError:
    """The error for a store that is damaged."""
    return Unavailable(
        "STORE_CORRUPT",
        f"The store {store} is damaged: {reason}. Nothing was changed. {what_to_do(store)}",
        reason=reason,
        backup=_shown_backup(store),
    )


def what_to_do(store: Path) -> str:
    """Advice to a person whose store was refused."""
    backup = newest_backup(store)
    restore = f"`workbench restore` brings back the newest backup, {backup}." if backup else "There is no backup."
    return (
        f"{restore} `workbench restore --as-it-is` goes on with what is there, `workbench restore --empty` with an "
        "empty store. Each keeps what is there now aside."
    )


def _shown_backup(store: Path) -> str | None:
    backup = newest_backup(store)
    return str(backup) if backup else None


def _check(store: Path, db: SqliteConnection, seconds: float | None) -> bool:
    """Have SQLite check a database, and refuse one that is damaged; False if the time was too short for all of it."""
    if seconds is not None:
        end = time.monotonic() + seconds
        db.set_progress_handler(lambda: time.monotonic() > end, STEPS)
    try:
        (result,) = db.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return False
    finally:
        db.set_progress_handler(None, 0)
    if result != "ok":
        raise corrupt(store, result)
    return True


def _file_state(store: Path) -> tuple[int, int, int] | None:
    """A state that changes when the closed store changes; None if a process has it open, or left its log."""
    status = store.stat()
    return None if log_of(store).exists() else (status.st_ino, status.st_size, status.st_mtime_ns)


def _answer(store: Path, question: Callable[[SqliteConnection], T], *, is_closed: bool) -> T:
    mode = "mode=ro&immutable=1" if is_closed else "mode=ro"
    address = f"file:{quote(os.fspath(store.resolve()))}?{mode}"
    db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, factory=SqliteConnection)
    with closing(db):
        db.execute("PRAGMA query_only = ON")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("BEGIN")
        return question(db)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
