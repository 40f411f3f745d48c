"""Opens the store of a project: on the PostgreSQL database in `database_url`, else on SQLite in its state directory."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from workbench.errors import Conflict
from workbench.state.database_note import DatabaseNote
from workbench.state.database_url import VARIABLE
from workbench.state.restore_note import require_restored
from workbench.state.settings import Settings
from workbench.store import opening
from workbench.store.base import Store
from workbench.store.examination import read_only, require_there, store_error
from workbench.store.queries import beside
from workbench.trust import state_directory

SQL = beside(__file__)
Clock = Callable[[], int]

log = logging.getLogger(__name__)


def open_store(settings: Settings, clock: Clock | None = None) -> Store:
    """Open the project's store; create and migrate it if necessary. Blocks; not for a thread with an event loop.

    Args:
        clock: see `opening.open_store`.

    Raises:
        Unavailable: see `opening.open_store`.
        Conflict: see `opening.open_store`; ``DATABASE_NOT_SET``, ``DATABASE_OF_ANOTHER``, ``DATABASE_LACKS_WORK``,
            ``RESTORE_UNFINISHED``.
    """
    require_restored(settings.project)
    note = DatabaseNote.of(settings.home)
    if settings.database_url is None:
        if note is not None:
            raise not_set(settings, note)
        return opening.open_store(settings.database, clock)
    work = _newest_work(settings.database) if note is None else None

    def recognise(created: int | None) -> None:
        if note is not None and created != note.created:
            raise _of_another(settings, note)
        if work is not None and created is None:
            raise _lacks_work(settings)

    store = opening.open_store(settings.database_url.conninfo, clock, recognise)
    try:
        created = note.created if note else _begin(store, settings, work)
        DatabaseNote(str(settings.database_url), created).write(settings.home)
    except BaseException:
        store.close()
        raise
    return store


@contextmanager
def opener(settings: Settings) -> Iterator[Callable[..., Store]]:
    """`open_store` for a project that exists; of another one, it opens an empty, temporary store.

    Raises:
        Refused, Unavailable: see `state_directory.check`, `state_directory.has_store`.
    """
    state_directory.check(settings.project)
    if state_directory.has_store(settings):
        yield partial(open_store, settings)
    else:
        with TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True) as place:
            yield partial(opening.open_store, Path(place) / settings.database.name)


def _begin(store: Store, settings: Settings, work: tuple[int, int] | None) -> int:
    """When the store of a database was created that the project has not used before.

    Args:
        work: see `_newest_work`.

    Raises:
        Conflict: ``DATABASE_LACKS_WORK``.
    """
    event, at = work or (None, None)
    identity, newest = asyncio.run(store.read(lambda tx: (tx.one(SQL.identity, event=event), tx.one(SQL.newest))))
    assert identity is not None
    is_rolled_up = event is not None and event <= (identity["rolled_up"] or 0)
    if identity["at"] != at and not is_rolled_up:
        raise _lacks_work(settings)
    if work is None and newest is not None:
        log.warning(
            "%s uses the store in the database %s from now on, in which there is work already. If that is another "
            "project's, unset %s, and remove %s.",
            *(settings.project, settings.database_url, VARIABLE, DatabaseNote.file(settings.home)),
        )
    return int(identity["created"])


def _newest_work(database: Path) -> tuple[int, int] | None:
    """The newest event in the project's SQLite file that a person or an agent caused, and its time; None if none is."""
    if not require_there(database):
        return None
    try:
        newest: tuple[int, int] | None = read_only(database, lambda db: db.execute(SQL.newest.sqlite).fetchone())
    except sqlite3.Error as error:
        raise store_error(database, error) from error
    return newest


def _lacks_work(settings: Settings) -> Conflict:
    return Conflict(
        "DATABASE_LACKS_WORK",
        f"The database {settings.database_url} does not have the work that this project has in {settings.database}. "
        "`workbench db copy --to` copies it into an empty database. To begin without it, move the file away.",
    )


def _of_another(settings: Settings, note: DatabaseNote) -> Conflict:
    return Conflict(
        "DATABASE_OF_ANOTHER",
        f"This project's store is in the database {note.url}, and {settings.database_url} has another one, or "
        f"none. Correct database_url, or remove {note.file(settings.home)} to use the other database from now on.",
    )


def not_set(settings: Settings, note: DatabaseNote) -> Conflict:
    """The error for a project whose store is in a database that is not set here."""
    return Conflict(
        "DATABASE_NOT_SET",
        f"This project's store is in the database {note.url}, which is not set here. Set {VARIABLE} to its address, or "
        f"database_url in your settings. To begin with SQLite instead, remove {note.file(settings.home)}.",
    )
