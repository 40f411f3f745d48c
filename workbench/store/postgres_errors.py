"""Coded errors for failures of a PostgreSQL server, and of the connection to it. None quotes a password."""

from __future__ import annotations

import re
from collections.abc import Sequence

import psycopg
from psycopg import errors

from workbench.errors import BadInput, Unavailable, WorkbenchError
from workbench.state.database_url import VARIABLE, DatabaseUrl
from workbench.store.fence import BUSY
from workbench.store.group_commit import FULL

SETTING = f"database_url ({VARIABLE})"
LOST = ("STORE_UNAVAILABLE", "The connection to PostgreSQL was lost. Nothing was changed. Try again.")
READ_ONLY = (
    "STORE_READ_ONLY",
    "The PostgreSQL server only reads: it is a replica, or set so. Give the address of the primary server.",
)
_CORRUPT = ("STORE_CORRUPT", "PostgreSQL found its files damaged. Restore the database from a backup of the server.")
_FAILED = ("STORE_FAILED", "The disk of the PostgreSQL server failed. Nothing was changed.")
_CROWDED = ("STORE_CROWDED", "Close some connections to the server, or raise its max_connections.")
_REFUSED = (
    "STORE_REFUSED",
    "PostgreSQL does not let this user do that. Let the user own the database, or give another one.",
)
_NO_SCHEMA = (
    "STORE_REFUSED",
    "The database has no schema for tables. Create one, or correct the search_path of the user or of the address.",
)
STORAGE_ERRORS: dict[str, tuple[str, str]] = {
    "53100": (FULL[0], "The disk of the PostgreSQL server is full. Free some space there; nothing was changed."),
    "53200": ("STORE_FAILED", "The PostgreSQL server has no memory left. Nothing was changed."),
    "53300": _CROWDED,
    "55P03": BUSY,
    "40P01": BUSY,
    "40001": BUSY,
    "57014": BUSY,
    "25006": READ_ONLY,
    "42501": _REFUSED,
    "3F000": _NO_SCHEMA,
    "58030": _FAILED,
    "58P01": _FAILED,
    "XX001": _CORRUPT,
    "XX002": _CORRUPT,
}
"""By SQLSTATE."""
_LOST_STATES = {"57P01", "57P02", "57P03", "57P04", "57P05", "25P03"}
_STALE_PLAN = "cached plan must not change result type"
CAUSES: Sequence[tuple[re.Pattern[str], tuple[str, str]]] = [
    (re.compile(pattern), found)
    for pattern, found in (
        ("too many clients|remaining connection slots|too many connections", _CROWDED),
        (
            "starting up|shutting down|in recovery mode|not yet accepting|terminating connection",
            ("STORE_UNAVAILABLE", "Try again in a moment."),
        ),
        (
            'database ".*" does not exist',
            ("DATABASE_MISSING", f"Create it with `createdb`, or correct {SETTING}."),
        ),
        (
            'authentication failed|no password supplied|role ".*" does not exist|not permitted to log in'
            "|no pg_hba.conf entry|permission denied|cannot authenticate",
            (
                "DATABASE_REFUSES_USER",
                f"Correct the user and the password: {SETTING}, or a password file of libpq (~/.pgpass).",
            ),
        ),
        ("SSL|certificate", ("STORE_UNREADABLE", f"Correct sslmode and what belongs to it in {SETTING}.")),
        (
            "definition of service|invalid .*(option|value)",
            ("STORE_UNREADABLE", f"Correct {SETTING}."),
        ),
    )
]
"""What libpq or the server says, with the code for it and the next step; the first that fits."""
_OTHERWISE = ("STORE_UNAVAILABLE", f"Start the server, or correct {SETTING}.")
PASSING = frozenset({"STORE_UNAVAILABLE", "STORE_CROWDED", "STORE_READ_ONLY"})
"""The codes of what may be over in a moment: a server that starts again, or another one that takes its place."""


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
    description = STORAGE_ERRORS.get(error.sqlstate or "") or (LOST if is_lost(error) else None)
    return Unavailable(*description, reason=reason(error)) if description else None


def reason(error: BaseException) -> str:
    """What libpq or the server says, in one line."""
    said = str(error).removeprefix("connection is bad: ").removeprefix("connection failed: ")
    return " ".join(said.partition("Is the server running")[0].split())


def opening_error(target: str, error: psycopg.Error) -> WorkbenchError:
    """The coded error for a database that cannot be opened, or that takes no more connections.

    libpq has no SQLSTATE for what happens before there is a connection: only what it says tells the causes apart.
    """
    try:
        url = DatabaseUrl(target)
    except ValueError:
        url = None
    if url is None or (isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None):
        return BadInput("DATABASE_URL_INVALID", f"libpq cannot read the database's address. Correct {SETTING}.")
    if error.sqlstate and (coded := storage_error(error)):
        return coded
    said = reason(error)
    for secret in url.secrets:
        said = said.replace(secret, "•")
    code, advice = next((found for pattern, found in CAUSES if pattern.search(said)), _OTHERWISE)
    return Unavailable(code, f"PostgreSQL at {url}: {said.rstrip('.')}. {advice}", url=str(url))
