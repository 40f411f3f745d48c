"""Changes rows so that no file of the store holds their old values any more."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from workbench.errors import Unavailable
from workbench.store.fence import BUSY, BUSY_SECONDS, Fence
from workbench.store.sqlite_connection import connect
from workbench.store.sqlite_errors import storage_error


def rewrite(path: Path, statements: Iterable[str], functions: Mapping[str, Callable[..., Any]]) -> None:
    """See `Store.rewrite`. Blocks. Uses a connection of its own: the writer's may be needed at any time.

    Deleted content is overwritten, the database is rebuilt without free pages, and the write-ahead log is emptied.
    """
    fence = Fence.of(path)
    try:
        with fence.held(BUSY_SECONDS), closing(connect(path)) as db:
            db.execute("PRAGMA secure_delete = ON")
            for name, function in functions.items():
                db.create_function(name, 1, function, deterministic=True)
            db.execute("BEGIN IMMEDIATE")
            for statement in statements:
                db.execute(statement)
            db.execute("COMMIT")  # if a statement fails, closing the connection undoes the others
            db.execute("VACUUM")
            (is_busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if is_busy:
                raise Unavailable(*BUSY)
    except sqlite3.Error as error:
        raise storage_error(error) or error from error
    finally:
        fence.close()
