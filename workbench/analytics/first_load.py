"""Fills an empty copy of a large store from files, which a child process writes one after the other.

From SQLite they are Parquet, by ADBC; from PostgreSQL they are CSV, by COPY.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from workbench.analytics.mirrors import MIRRORS, NUMBERED, TABLES
from workbench.store.queries import Dialect, Query, beside, render
from workbench.system import uninterrupted

if TYPE_CHECKING:
    import duckdb

SQL = beside(__file__)
SMALLEST = 20_000
"""With fewer events, starting a child takes longer than reading in this process."""
EXPORTING, COPYING = "workbench.analytics.exporting_child", "workbench.analytics.copying_child"
"""The children's programs."""
ABANDONED_SECONDS = 3_600.0
_WORK = ".work-"
_CSV = r"FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01', ESCAPE E'\x01'"
"""As COPY writes it: the usual comma and quotation mark are in most values, which takes twice as long to read."""
_READ_CSV = (
    "auto_detect = false, header = false, parallel = false, delim = '\x02', quote = '\x01', escape = '\x01', "
    "new_line = '\\n', nullstr = '', allow_quoted_nulls = false"
)
RolledUp = tuple[int, Sequence[bytes]]
NONE: RolledUp = (0, ())

_EXAMPLES = {"BIGINT": "0", "BOOLEAN": "0", "DOUBLE": "0.5", "VARCHAR": "''", "JSON": "'{}'"}


class LoadFailed(Exception):
    """Rows could not be copied: the disk is full, a package is missing, the child or the load was ended."""


class FirstLoad(ABC):
    """One load of the events and tables of a store; `stop` ends it from another thread.

    A table may be newer than the last event of the load: the rows of those that later events are about are read again
    with these.

    Args:
        last: the id of the last event that is loaded.
        rolled_up: the id of the last event that is rolled up, and the Parquet files that have those up to it.
    """

    def __init__(self, last: int, rolled_up: RolledUp = NONE) -> None:
        self._last = last
        self._rolled_up = rolled_up
        self._stopped = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def into(self, db: duckdb.DuckDBPyConnection) -> None:
        """Insert everything into the empty tables of a database.

        Raises:
            LoadFailed: the rows could not be copied, or the load was stopped; some tables are filled.
        """
        import duckdb

        try:
            with self._workplace() as place, self._exporting(place) as child:
                self._insert_old(db, place)
                self._insert(db, child)
        except (OSError, ValueError, duckdb.Error) as error:
            raise LoadFailed(str(error)) from error

    def stop(self) -> None:
        """Let `into` fail soon, if it has not ended; it leaves no file."""
        self._stopped.set()
        if self._child is not None:
            self._child.kill()

    @property
    @abstractmethod
    def _program(self) -> Sequence[str]:
        """The child's module, and its arguments."""

    @abstractmethod
    def _workplace(self) -> AbstractContextManager[Path]:
        """A directory for the files."""

    @abstractmethod
    def _jobs(self, place: Path) -> bytes:
        """The child's input, which has it copy the rows of all tables to files."""

    @abstractmethod
    def _rows(self, table: str, file: Mapping[str, Any]) -> str:
        """How DuckDB reads the rows of a file."""

    @abstractmethod
    def _taken(self, child: subprocess.Popen[bytes], file: Mapping[str, Any]) -> None:
        """The rows of a file are in."""

    @contextmanager
    def _exporting(self, place: Path) -> Iterator[subprocess.Popen[bytes]]:
        """A child that has the jobs for all tables."""
        argv = [sys.executable, "-P", "-m", *self._program]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with uninterrupted.started(argv, **pipes) as child:
            self._child = child
            if self._stopped.is_set():
                raise LoadFailed("The load was stopped.")
            assert child.stdin is not None
            child.stdin.write(self._jobs(place))
            child.stdin.flush()
            yield child

    def _insert_old(self, db: duckdb.DuckDBPyConnection, place: Path) -> None:
        """Insert the events that are rolled up."""
        for number, parquet in enumerate(self._rolled_up[1]):
            file = place / f"old-{number}.parquet"
            file.write_bytes(parquet)
            db.execute(f"INSERT INTO raw_events SELECT * FROM read_parquet({_quoted(str(file))})")
            file.unlink()

    def _insert(self, db: duckdb.DuckDBPyConnection, child: subprocess.Popen[bytes]) -> None:
        """Insert the files as they are written."""
        import numpy  # noqa: F401 (updates need it: it is imported while the child works)

        db.execute("SET threads = 1")  # it would hold much of a file, and keep those who write to the store waiting
        for table in TABLES:
            while "rows" not in (answer := _answer(child)):
                db.execute(f"INSERT INTO {table} SELECT * FROM {self._rows(table, answer)}")
                self._taken(child, answer)
        if db.execute("SELECT coalesce(max(id), 0) FROM raw_events").fetchone() != (self._last,):
            raise LoadFailed(f"The copy does not end with event {self._last}.")
        db.execute("RESET threads")


def _answer(child: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The next answer of a child.

    Raises:
        LoadFailed: it cannot do its jobs, or has ended.
    """
    assert child.stdout is not None
    answer: dict[str, Any] = json.loads(child.stdout.readline() or '{"error": "The process has ended."}')
    if "error" in answer:
        raise LoadFailed(answer["error"])
    return answer


class SqliteLoad(FirstLoad):
    """A load from the file of a SQLite store."""

    def __init__(self, database: Path, last: int, rolled_up: RolledUp = NONE) -> None:
        super().__init__(last, rolled_up)
        self._database = database

    @property
    def _program(self) -> Sequence[str]:
        return EXPORTING, f"file:{quote(str(self._database.resolve()))}?mode=ro"

    def _workplace(self) -> AbstractContextManager[Path]:
        return _beside(self._database)

    def _jobs(self, place: Path) -> bytes:
        queries = _queries(self._rolled_up[0], self._last, Dialect.SQLITE)
        return b"".join(_job(query, TABLES[table], place / f"{table}.parquet") for table, query in queries.items())

    def _rows(self, table: str, file: Mapping[str, Any]) -> str:
        return f"read_parquet({_quoted(file['path'])})"

    def _taken(self, child: subprocess.Popen[bytes], file: Mapping[str, Any]) -> None:
        Path(file["path"]).unlink()


class PostgresLoad(FirstLoad):
    """A load from a PostgreSQL database, in one snapshot.

    Args:
        target: where the database is, as libpq takes it.
    """

    def __init__(self, target: str, last: int, rolled_up: RolledUp = NONE) -> None:
        super().__init__(last, rolled_up)
        self._target = target

    @property
    def _program(self) -> Sequence[str]:
        return (COPYING,)

    def _workplace(self) -> AbstractContextManager[Path]:
        return _temporary()

    def _jobs(self, place: Path) -> bytes:
        jobs = [
            {"copy": f"COPY (SELECT {', '.join(TABLES[table])} FROM ({query}) AS rows) TO STDOUT ({_CSV})"}
            | {"path": str(place / f"{table}.csv")}
            for table, query in _queries(self._rolled_up[0], self._last, Dialect.POSTGRES).items()
        ]
        return json.dumps({"target": self._target, "jobs": jobs}).encode() + b"\n"

    def _rows(self, table: str, file: Mapping[str, Any]) -> str:
        size = file["bytes"] + 1  # any more would be taken, and cost time
        limits = f"max_line_size = {size}, buffer_size = {size}"
        return f"read_csv({_quoted(file['path'])}, columns = {dict(TABLES[table])}, {limits}, {_READ_CSV})"

    def _taken(self, child: subprocess.Popen[bytes], file: Mapping[str, Any]) -> None:
        assert child.stdin is not None
        Path(file["path"]).unlink()
        with suppress(BrokenPipeError):  # it has done all its jobs
            child.stdin.write(b"\n")
            child.stdin.flush()


def first_load(target: Path | str, last: int, rolled_up: RolledUp = NONE) -> FirstLoad:
    """A load from the database of a store.

    Args:
        target: see `Store.target`.
        rolled_up: see `FirstLoad`.
    """
    return SqliteLoad(target, last, rolled_up) if isinstance(target, Path) else PostgresLoad(target, last, rolled_up)


@contextmanager
def _beside(database: Path) -> Iterator[Path]:
    """A temporary directory on the disk of a store. Also removes those that ended processes left.

    Raises:
        OSError: the directory cannot be written to.
    """
    directory = database.with_name("analytics")
    directory.mkdir(mode=0o700, exist_ok=True)
    for abandoned in directory.glob(f"{_WORK}*"):
        with suppress(OSError):
            if time.time() - abandoned.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(abandoned, ignore_errors=True)
    with TemporaryDirectory(prefix=_WORK, dir=directory, ignore_cleanup_errors=True) as place:
        yield Path(place)


@contextmanager
def _temporary() -> Iterator[Path]:
    """A temporary directory on the machine's disk for such."""
    with TemporaryDirectory(prefix="workbench-load-", ignore_cleanup_errors=True) as place:
        yield Path(place)


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


def _queries(rolled_up: int, last: int, dialect: Dialect) -> dict[str, str]:
    """What the database runs for each table, the events first: they take longest."""
    return {
        "raw_events": _filled(SQL.events, dialect, rolled_up=rolled_up, last=last),
        **{mirror.table: _filled(mirror.rows, dialect, keys="NULL") for mirror in MIRRORS},
        **{mirror.table: _filled(mirror.rows, dialect, after=0, keys="'[]'") for mirror in NUMBERED},
    }


def _filled(query: Query, dialect: Dialect, **values: int | str) -> str:
    """A query with expressions in place of its parameters."""
    text = render(query.text, dialect)
    for name, value in values.items():
        text = text.replace(f":{name}", str(value))
    return text


def _job(query: str, columns: Mapping[str, str], path: Path) -> bytes:
    """A line that has the child copy the rows of a query to a file.

    ADBC infers the types of the columns from the first rows, where a column may be null throughout. So a row without
    nulls comes first, and is left out of the file.

    Args:
        columns: those of the rows, with their types in DuckDB.
    """
    examples = ", ".join(f"{_EXAMPLES[kind]} AS {name}" for name, kind in columns.items())
    read = f"SELECT 1 AS is_example, {examples} UNION ALL SELECT 0, {', '.join(columns)} FROM ({query})"
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns.items())
    job = {"read": read, "write": f"{casts} FROM rows WHERE is_example = 0", "path": str(path)}
    return json.dumps(job).encode() + b"\n"
