"""Reads the store of another project, in use or not, without changing anything there."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from workbench.errors import Conflict, NotFound, Refused
from workbench.model import wall_clock
from workbench.store.base import Reader
from workbench.store.migrate import is_current, scripts
from workbench.store.sqlite import SqliteReader
from workbench.store.sqlite_connection import Connection
from workbench.store.sqlite_errors import storage_error

T = TypeVar("T")


def read_snapshot(path: Path, question: Callable[[Reader], T]) -> T:
    """Ask a question of a store, as of one moment. May ask it again.

    A store that nobody has open has no log. It is read as a file that does not change, as SQLite would otherwise
    create a log beside it; if it was opened meanwhile, the answer is dropped.

    Raises:
        NotFound: ``NO_PROJECT``. Refused: ``STATE_NOT_YOURS``.
        Conflict: ``PROJECT_OUTDATED``, ``MIGRATION_DRIFT``, ``MIGRATION_UNKNOWN``.
        Unavailable: ``STORE_BUSY``, ``STORE_CORRUPT``, ``STORE_UNREADABLE``.
    """
    try:
        while True:
            before = _state(path)
            found = _answer(path, question, is_closed=before is not None)
            if before is None or _state(path) == before:
                return found
    except sqlite3.Error as error:
        raise storage_error(error) or error from error


def _state(path: Path) -> tuple[int, int, int] | None:
    """What changes when a store that nobody has open is changed; None: somebody has it open, or has left its log."""
    try:
        found = path.lstat()
    except OSError:
        raise NotFound("NO_PROJECT", f"{path.parent.parent} is no project any more.") from None
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise Refused("STATE_NOT_YOURS", f"{path} is a link, or belongs to another user, so it is not used.")
    is_open = path.with_name(f"{path.name}-wal").exists()
    return None if is_open else (found.st_ino, found.st_size, found.st_mtime_ns)


def _answer(path: Path, question: Callable[[Reader], T], *, is_closed: bool) -> T:
    how = "mode=ro&immutable=1" if is_closed else "mode=ro"
    address = f"file:{quote(str(path))}?{how}"
    db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, factory=Connection)
    with closing(db):
        db.execute("PRAGMA query_only = ON")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("BEGIN")
        if not is_current(db, scripts()):
            raise Conflict(
                "PROJECT_OUTDATED",
                f"{path.parent.parent} was last used with an older Workbench. Update its store with "
                f"`workbench migrate --project {path.parent.parent}`.",
            )
        return question(SqliteReader(db, wall_clock()))
