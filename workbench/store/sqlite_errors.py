"""Coded errors for failures of a store's file."""

from __future__ import annotations

import sqlite3

from workbench.errors import Unavailable, WorkbenchError
from workbench.store.fence import BUSY
from workbench.store.group_commit import FULL

UNSYNCED = (
    "STORE_UNSYNCED",
    "The disk failed to sync the store. The change was made, but a crash of the machine may undo it. Check the disk.",
)
STORAGE_ERRORS = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: FULL,  # no space for the index of the log
    sqlite3.SQLITE_READONLY: ("STORE_READ_ONLY", "The store's directory is read-only. Make it writable."),
    sqlite3.SQLITE_CANTOPEN: ("STORE_UNREADABLE", "The store cannot be opened. Check the directory's permissions."),
    sqlite3.SQLITE_CORRUPT: (
        "STORE_CORRUPT",
        "The store is damaged. Stop Workbench; `workbench doctor` says what to do then.",
    ),
    sqlite3.SQLITE_NOTADB: (
        "STORE_CORRUPT",
        "The store is no database. Stop Workbench; `workbench doctor` says what to do then.",
    ),
    sqlite3.SQLITE_IOERR: ("STORE_FAILED", "The store's disk failed. Nothing was changed."),
}


def storage_error(error: BaseException) -> WorkbenchError | None:
    """The coded error for a failure of the storage itself; None if the statement was at fault."""
    code = getattr(error, "sqlite_errorcode", None)
    description = (STORAGE_ERRORS.get(code) or STORAGE_ERRORS.get(code & 0xFF)) if code is not None else None
    return Unavailable(*description, reason=str(error)) if description else None
