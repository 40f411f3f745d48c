"""Files with everything that can be queried: each view and the tables below, as Parquet, CSV or JSON lines."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, TypeVar

from workbench.analytics.exported import FORMATS, FORMULA, SAVED, TEXT
from workbench.analytics.live import Live, read_closed
from workbench.analytics.questions import POLL_SECONDS
from workbench.errors import Conflict, Interrupted, Unavailable
from workbench.state.settings import Settings
from workbench.system import atomic_file

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")


@dataclass(frozen=True)
class SavedExport:
    """A file of an export."""

    file: str
    rows: int
    bytes: int


class ExportStop:
    """Ends an export from another thread."""

    def __init__(self) -> None:
        self._is_set = False
        self._db: duckdb.DuckDBPyConnection | None = None

    def set(self) -> None:
        """End what is being written, and begin nothing more."""
        self._is_set = True
        if self._db is not None:
            self._db.interrupt()

    def check(self, db: duckdb.DuckDBPyConnection) -> None:
        """Call it before a database writes something.

        Raises:
            Interrupted: ``INTERRUPTED``.
        """
        self._db = db
        if self._is_set:
            raise Interrupted(
                "INTERRUPTED", "The command was interrupted. What it has done stays; run it again for the rest."
            )


def in_thread(work: Callable[[ExportStop], T]) -> T:
    """Export in a thread of its own, because this one may run a notebook's loop; an interrupt ends the export.

    Raises:
        Exception: what the work raises. KeyboardInterrupt: once the work has ended.
    """
    stop = ExportStop()
    with ThreadPoolExecutor(1, thread_name_prefix="workbench-export") as apart:
        exporting = apart.submit(work, stop)
        try:
            return exporting.result()
        except KeyboardInterrupt:
            while not exporting.done():  # an interrupt that comes before a query has begun is lost
                stop.set()
                wait([exporting], POLL_SECONDS)
            raise


def export(
    settings: Settings, directory: Path, form: str, force: bool = False, stop: ExportStop | None = None
) -> Sequence[SavedExport]:
    """Write every view and table of a project to a file of its own, all as of one moment.

    A failure leaves what was in the directory. Call it in a thread that has no event loop.

    Args:
        form: one of `FORMATS`.
        force: replace files of earlier exports.
        stop: ends it.

    Raises:
        Interrupted: ``INTERRUPTED``. Conflict: ``OUTPUT_EXISTS``: the directory has content.
        Unavailable: ``OUTPUT_UNWRITABLE``; see `read_closed`.
    """
    with _writing(directory), _place(directory, force) as place:
        with _opened(settings) as db:
            stop = stop or ExportStop()
            saved = [_save(db, name, place / f"{name}.{form}", form, stop) for name in SAVED]
        for export_file in saved:
            (place / export_file.file).replace(directory / export_file.file)
    return saved


def export_view(settings: Settings, view: str, file: Path, form: str, stop: ExportStop | None = None) -> SavedExport:
    """Write a view of a project to a file, which is replaced as a whole. Call it in a thread that has no event loop.

    Args:
        view: one of `VIEWS`; form: one of `FORMATS`.
        stop: ends it.

    Raises:
        Interrupted: ``INTERRUPTED``. Unavailable: ``OUTPUT_UNWRITABLE``; see `read_closed`.
    """
    with _writing(file), atomic_file.replacing(file) as fresh, _opened(settings) as db:
        if fresh.exists():  # DuckDB would put a file in its place
            raise OSError(errno.EINVAL, "It is not a regular file")
        saved = _save(db, view, fresh, form, stop or ExportStop())
    return SavedExport(file.name, saved.rows, saved.bytes)


@contextmanager
def _opened(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """All that can be queried, as of one moment."""
    with TemporaryDirectory(prefix="workbench-export-") as scratch:
        live = Live(files=True, scratch=Path(scratch))
        live.replica.apply(read_closed(live, settings))
        db = live.replica.connection()
        db.execute("SET TimeZone = 'UTC'")
        yield db
        db.close()
        live.replica.close()


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Write something there.

    Raises:
        Unavailable: ``OUTPUT_UNWRITABLE``.
    """
    import duckdb

    try:
        yield
    except (OSError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        reason = _reason(error).removesuffix(".")
        raise Unavailable("OUTPUT_UNWRITABLE", f"{place} cannot be written: {reason}.{_advice(error)}") from error


def _advice(error: Exception) -> str:
    import duckdb

    lacks_memory = isinstance(error, duckdb.OutOfMemoryException)
    return "" if lacks_memory else " Choose another place, or make space there."


def _reason(error: Exception) -> str:
    """Why writing failed; DuckDB wraps the number of the system's error in JSON."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    number = re.search(r'"errno":"(\d+)"', str(error))
    return os.strerror(int(number[1])) if number else str(error)


@contextmanager
def _place(directory: Path, force: bool) -> Iterator[Path]:
    """A temporary directory below the one that is written; removes both if nothing was there and the export fails."""
    is_new = not directory.exists()
    if not is_new and not force and any(directory.iterdir()):
        raise Conflict("OUTPUT_EXISTS", f"{directory} is not empty. Choose another directory, or replace it: --force.")
    directory.mkdir(parents=True, exist_ok=True)
    place = Path(mkdtemp(prefix=".export-", dir=directory))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if is_new and not any(directory.iterdir()):
            directory.rmdir()


def _save(db: duckdb.DuckDBPyConnection, name: str, file: Path, form: str, stop: ExportStop) -> SavedExport:
    stop.check(db)
    quoted = str(file).replace("'", "''")
    columns = {"csv": _cells, "parquet": _texts}.get(form, _strict)(db, name)
    row = db.execute(f"COPY (SELECT {columns} FROM {name}) TO '{quoted}' ({FORMATS[form]})").fetchone()
    assert row is not None
    return SavedExport(file.name, row[0], file.stat().st_size)


def _cells(db: duckdb.DuckDBPyConnection, name: str) -> str:
    """The columns of a table, with an apostrophe before text that a spreadsheet would read as a formula."""
    described = db.execute(f"DESCRIBE {name}").fetchall()
    return ", ".join(
        f"CASE WHEN regexp_matches({column}, '{FORMULA}') THEN '''' || {column} ELSE {column} END AS {column}"
        if kind in TEXT
        else column
        for column, kind, *_ in described
    )


def _texts(db: duckdb.DuckDBPyConnection, name: str) -> str:
    """The columns of a table with JSON as text: in Parquet, some readers take it for bytes."""
    described = db.execute(f"DESCRIBE {name}").fetchall()
    return ", ".join(
        f"CAST({column} AS VARCHAR) AS {column}" if kind == "JSON" else column for column, kind, *_ in described
    )


def _strict(db: duckdb.DuckDBPyConnection, name: str) -> str:
    """The columns of a table with numbers that JSON has not as text, such as `Infinity`: DuckDB writes them bare."""
    described = db.execute(f"DESCRIBE {name}").fetchall()
    return ", ".join(
        f"CASE WHEN isfinite({column}) OR {column} IS NULL THEN to_json({column}) WHEN isnan({column}) THEN '\"NaN\"' "
        f"WHEN {column} > 0 THEN '\"Infinity\"' ELSE '\"-Infinity\"' END::JSON AS {column}"
        if kind in ("DOUBLE", "FLOAT")
        else column
        for column, kind, *_ in described
    )
