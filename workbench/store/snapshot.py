"""Reads the store of another project, in use or not, without changing anything there."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from workbench.errors import NotFound, Refused
from workbench.model import wall_clock
from workbench.store.base import Reader
from workbench.store.examination import read_only, require_marked, require_there, store_error
from workbench.store.mark import read_mark
from workbench.store.migrate import require_current
from workbench.store.opening import require_installed
from workbench.store.sqlite import SqliteReader
from workbench.store.sqlite_connection import SqliteConnection

T = TypeVar("T")


def read_snapshot(target: Path | str, question: Callable[[Reader], T]) -> T:
    """Run `question` on a consistent view of a store; may run it again.

    Args:
        target: see `open_store`.

    Raises:
        Unavailable: ``POSTGRES_NOT_INSTALLED``. Others: see `_read_file`, and `postgres.read_database`.
    """
    if isinstance(target, Path):
        return _read_file(target, question)
    require_installed()
    from workbench.store.postgres import read_database

    return read_database(target, question)


def _read_file(path: Path, question: Callable[[Reader], T]) -> T:
    """The same, of a file of SQLite.

    Raises:
        NotFound: ``NO_PROJECT``. Refused: ``STATE_NOT_YOURS``.
        Conflict: ``PROJECT_OUTDATED``, ``MIGRATION_DRIFT``, ``MIGRATION_UNKNOWN``.
        Unavailable: ``STORE_BUSY``, ``STORE_CORRUPT``, ``STORE_INCOMPLETE``, ``STORE_UNREADABLE``.
    """
    mark = read_mark(path)  # before the store: what others write meanwhile is not missed

    def examine(db: SqliteConnection) -> T:
        require_marked(path, db, mark)
        require_current(db, f"The store of {path.parent.parent}", path.parent.parent)
        return question(SqliteReader(db, wall_clock()))

    try:
        require_there(path)
        _require_own(path)
        return read_only(path, examine)
    except FileNotFoundError:
        raise _no_project(path) from None
    except sqlite3.Error as error:
        raise store_error(path, error) from error


def _require_own(path: Path) -> None:
    try:
        status = path.lstat()
    except OSError:
        raise _no_project(path) from None
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise Refused("STATE_NOT_YOURS", f"{path} is a link, or belongs to another user, so it is not used.")


def _no_project(path: Path) -> NotFound:
    return NotFound("NO_PROJECT", f"{path.parent.parent} is no project any more.")
