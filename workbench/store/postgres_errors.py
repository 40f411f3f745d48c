"""Coded errors for failures of a PostgreSQL server, and of the connection to it. None quotes a password."""

from __future__ import annotations

import psycopg
from psycopg import errors

from workbench.errors import Unavailable, WorkbenchError
from workbench.store.fence import BUSY
from workbench.store.group_commit import FULL

LOST = ("STORE_UNAVAILABLE", "The connection to PostgreSQL was lost. Nothing was changed. Try again.")
READ_ONLY = (
    "STORE_READ_ONLY",
    "The PostgreSQL server only reads: it is a replica, or set so. Give the address of the primary server.",
)
_CORRUPT = ("STORE_CORRUPT", "PostgreSQL found its files damaged. Restore the database from a backup of the server.")
_FAILED = ("STORE_FAILED", "The disk of the PostgreSQL server failed. Nothing was changed.")
_CROWDED = (
    "STORE_CROWDED",
    "The PostgreSQL server has no connection left. Close some, or raise its max_connections.",
)
_REFUSED = (
    "STORE_REFUSED",
    "PostgreSQL does not let this user do that. Let the user own the database, or give another one.",
)
_STATES: dict[str, tuple[str, str]] = {
    "53100": FULL,
    "53200": ("STORE_FAILED", "The PostgreSQL server has no memory left. Nothing was changed."),
    "53300": _CROWDED,
    "55P03": BUSY,
    "40P01": BUSY,
    "40001": BUSY,
    "57014": BUSY,
    "25006": READ_ONLY,
    "42501": _REFUSED,
    "58030": _FAILED,
    "58P01": _FAILED,
    "XX001": _CORRUPT,
    "XX002": _CORRUPT,
}
"""By SQLSTATE."""
_LOST_STATES = {"57P01", "57P02", "57P03", "57P04", "57P05", "25P03"}
_STALE_PLAN = "cached plan must not change result type"


def is_lost(error: BaseException) -> bool:
    """Whether a new connection may do what this one could not: it was lost, or its statements are of older tables."""
    if isinstance(error, errors.FeatureNotSupported):
        return _STALE_PLAN in str(error)
    if not isinstance(error, psycopg.OperationalError):
        return isinstance(error, psycopg.InterfaceError)  # it was closed
    state = error.sqlstate
    return state is None or state.startswith("08") or state in _LOST_STATES


def storage_error(error: BaseException) -> WorkbenchError | None:
    """The coded error for a failure of the storage itself; None if the statement was at fault."""
    if not isinstance(error, psycopg.Error):
        return None
    description = _STATES.get(error.sqlstate or "") or (LOST if is_lost(error) else None)
    return Unavailable(*description, reason=reason(error)) if description else None


def reason(error: BaseException) -> str:
    """What PostgreSQL says, in one line."""
    return " ".join(str(error).split())


def opening_error(target: str, error: psycopg.Error) -> WorkbenchError:
    """The coded error for a database that cannot be opened."""
    coded = storage_error(error)
    return coded or Unavailable("STORE_UNREADABLE", f"PostgreSQL: {reason(error)}.")
