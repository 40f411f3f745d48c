"""Opens the store of a project, on the database that it is in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from workbench.errors import Unavailable
from workbench.model import wall_clock
from workbench.store import sqlite
from workbench.store.base import Store


def open_store(
    target: Path | str,
    clock: Callable[[], int] | None = None,
    recognise: Callable[[int | None], None] | None = None,
) -> Store:
    """Open a store, and create and migrate it if necessary. Blocks for some milliseconds.

    Args:
        target: the file of SQLite's database; or where a PostgreSQL database is, as libpq takes it: a URL or
            ``keyword=value`` pairs.
        clock: the store's; otherwise that of the machine with SQLite, and that of the server with PostgreSQL.
        recognise: of a database of PostgreSQL, gets the time when its store was created, or None, and refuses the wrong
            one by an error: before anything in it is changed.

    Raises:
        Unavailable: see `workbench.store.sqlite.open_store` and `workbench.store.postgres.open_store`;
            ``POSTGRES_NOT_INSTALLED``.
        Conflict: ``MIGRATION_DRIFT``, ``MIGRATION_UNKNOWN``.
    """
    if isinstance(target, Path):
        return sqlite.open_store(target, clock or wall_clock)
    require_installed()
    from workbench.store import postgres

    return postgres.open_store(target, clock, recognise)


def require_installed() -> None:
    """Refuse PostgreSQL where what reaches it is missing.

    Raises:
        Unavailable: ``POSTGRES_NOT_INSTALLED``.
    """
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise Unavailable(
            "POSTGRES_NOT_INSTALLED",
            "What reaches PostgreSQL is not installed. Install it: pip install 'workbench-agents[postgres]'.",
        ) from error
