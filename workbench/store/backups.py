"""Makes backups of a store, in the directory `backups` beside it, and puts one in the store's place."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from workbench.errors import Conflict, Unavailable
from workbench.model import SECOND
from workbench.store.fence import BUSY_SECONDS, Fence
from workbench.store.log_sync import is_open, log_of
from workbench.store.mark import mark_file
from workbench.store.queries import beside
from workbench.store.sqlite_connection import connect
from workbench.store.sqlite_errors import storage_error
from workbench.system.atomic_file import sync

SQL = beside(__file__)


def back_up(store: Path, now: int) -> Path:
    """Copy a store to `backups/`, completely or not at all; the path of the copy.

    The store may be open, also in this process: it uses the same SQLite library, and this connection only reads.

    Raises:
        Unavailable: ``BACKUP_FAILED``.
    """
    return new_backup(store, now, lambda path: copy_file(store, path))


def new_backup(store: Path, now: int, make: Callable[[Path], object]) -> Path:
    """Have a function make a file in `backups/`, completely or not at all; the path of that.

    Raises:
        Unavailable: ``BACKUP_FAILED``.
    """
    backup = _directory(store) / f"{store.stem}-{_stamp(now)}{store.suffix}"
    unfinished = backup.with_suffix(".part")
    try:
        backup.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            make(unfinished)
            unfinished.rename(backup)
            sync(backup.parent)
        finally:
            remove(unfinished)
    except (OSError, sqlite3.Error) as error:
        raise failed(backup.parent, error) from error
    return backup


def failed(place: Path, error: Exception) -> Unavailable:
    """The error for a backup that cannot be written."""
    return Unavailable(
        "BACKUP_FAILED",
        f"The store could not be backed up to {place}: {error}. Nothing was changed. Free some space or make the "
        "directory writable, and try again.",
        reason=str(error),
    )


def newest_backup(store: Path) -> Path | None:
    """The newest backup of a store, by its name."""
    paths = _directory(store).glob(f"{store.stem}-[0-9]*{store.suffix}")
    return max((path for path in paths if path.is_file()), key=lambda path: path.name, default=None)


def replace(store: Path, backup: Path | None, now: int) -> Path:
    """Replace a store by a backup, or by nothing; the directory to which the old files were moved.

    If it is killed, the store is either replaced or refused. It can be done again.

    Raises:
        Conflict: ``STORE_IN_USE``. Unavailable: ``STORE_BUSY``, ``RESTORE_FAILED``.
    """
    temporary = store.with_suffix(".restored")
    with hold_closed(store):
        try:
            if backup is not None:
                temporary.unlink(missing_ok=True)
                copy_file(backup, temporary, _read_mode(backup))
            return _exchange(store, temporary if backup else None, now)
        finally:
            temporary.unlink(missing_ok=True)


def put(file: Path, store: Path, now: int) -> Path | None:
    """Give a database a store's name, within `hold_closed`; the directory to which old files were moved, if any."""
    if any(path.exists() for path in _files(store)):
        return _exchange(store, file, now)
    file.rename(store)
    mark_file(store).unlink(missing_ok=True)
    sync(store.parent)
    return None


def accept(store: Path, now: int) -> Path:
    """Accept a store as it is, whatever it lacks; the directory that holds a copy of it.

    Raises:
        Conflict: ``STORE_IN_USE``. Unavailable: ``STORE_BUSY``, ``RESTORE_FAILED``; ``STORE_CORRUPT``: SQLite cannot
            open it.
    """
    with hold_closed(store):
        aside = new_aside(store, now)
        for path in _files(store):
            if path.exists():
                shutil.copy2(path, aside / path.name)
                sync(aside / path.name)
        sync(aside)
        with closing(connect(store)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        mark_file(store).unlink(missing_ok=True)
    return aside


def _exchange(store: Path, file: Path | None, now: int) -> Path:
    aside = new_aside(store, now)
    for path in _files(store):
        if path.exists():
            path.rename(aside / path.name)
    if file is not None:
        file.rename(store)
    mark_file(store).unlink(missing_ok=True)
    for directory in (aside, store.parent):
        sync(directory)
    return aside


@contextmanager
def hold_closed(store: Path) -> Iterator[None]:
    """Hold a store's fence for work on its files, while no process has it open.

    Raises:
        Conflict: ``STORE_IN_USE``. Unavailable: ``STORE_BUSY``, ``STORE_CORRUPT``, ``RESTORE_FAILED``.
    """
    fence = Fence.of(store)
    try:
        with fence.held(BUSY_SECONDS):
            if is_open(store):
                raise Conflict(
                    "STORE_IN_USE", f"A process has {store} open. Stop the server and the notebooks that use it."
                )
            yield
    except (OSError, sqlite3.Error) as error:
        coded_error = storage_error(error)
        raise coded_error or Unavailable(
            "RESTORE_FAILED",
            f"The store could not be restored: {error}. Do it again when that is mended, or choose another backup.",
            reason=str(error),
        ) from error
    finally:
        fence.close()


def _files(store: Path) -> tuple[Path, ...]:
    return store, *(store.with_name(f"{store.name}-{suffix}") for suffix in ("wal", "shm", "journal"))


def new_aside(store: Path, now: int) -> Path:
    """A directory for a store's files, or copies of them, that are replaced at a time."""
    aside = _directory(store) / f"replaced-{_stamp(now)}"
    aside.mkdir(mode=0o700, parents=True, exist_ok=True)  # what is put aside at one time is together
    return aside


def _directory(store: Path) -> Path:
    return store.parent / "backups"


def _stamp(now: int) -> str:
    return datetime.fromtimestamp(now / SECOND, UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def copy_file(database: Path, copy: Path, mode: str = "mode=rw") -> None:
    """Copy a database as it is at one moment, also while others write to it."""
    with closing(sqlite3.connect(f"file:{quote(str(database))}?{mode}", uri=True, isolation_level=None)) as db:
        db.execute(SQL.copy.sqlite, {"path": str(copy)})
    sync(copy)  # SQLite does not do that for the file of VACUUM INTO


def remove(database: Path) -> None:
    """Remove a database that nobody has open, if there is one."""
    for path in _files(database):
        path.unlink(missing_ok=True)


def _read_mode(backup: Path) -> str:
    """The mode in which SQLite reads a backup and leaves no log beside it; one with a log was never closed."""
    return "mode=ro" if log_of(backup).exists() else "mode=ro&immutable=1"
