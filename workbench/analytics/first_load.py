"""Fills an empty copy of a large store from Parquet files, which a child process writes one after the other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from workbench.analytics.mirrors import MIRRORS, NUMBERED, TABLES
from workbench.store.queries import Query, beside
from workbench.system import uninterrupted

if TYPE_CHECKING:
    import duckdb

SQL = beside(__file__)
SMALLEST = 20_000
"""With fewer events, starting a child takes longer than reading in this process."""
PROGRAM = "workbench.analytics.exporting_child"
ABANDONED_SECONDS = 3_600.0
_WORK = ".work-"
_EXAMPLES = {"BIGINT": "0", "BOOLEAN": "0", "DOUBLE": "0.5", "VARCHAR": "''", "JSON": "'{}'"}


class LoadFailed(Exception):
    """Rows could not be copied: the disk is full, a package is missing, the child or the load was ended."""


class FirstLoad:
    """One load of the events and tables of a SQLite store; `stop` ends it from another thread.

    A table may be newer than the last event of the load: the rows of those that later events are about are read again
    with these.

    Args:
        last: the id of the last event that is loaded.
    """

    def __init__(self, database: Path, last: int) -> None:
        self._database = database
        self._queries = _queries(last)
        self._stopped = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def into(self, db: duckdb.DuckDBPyConnection) -> None:
        """Insert everything into the empty tables of a database.

        Raises:
            LoadFailed: the rows could not be copied, or the load was stopped; some tables are filled.
        """
        import duckdb

        try:
            with _workplace(self._database.with_name("analytics")) as place, self._exporting(place) as child:
                self._insert(db, child, place)
        except (OSError, ValueError, duckdb.Error) as error:
            raise LoadFailed(str(error)) from error

    def stop(self) -> None:
        """Let `into` fail soon, if it has not ended; it leaves no file."""
        self._stopped.set()
        if self._child is not None:
            self._child.kill()

    @contextmanager
    def _exporting(self, place: Path) -> Iterator[subprocess.Popen[bytes]]:
        """A child that has the jobs for all tables."""
        argv = [sys.executable, "-P", "-m", PROGRAM, f"file:{quote(str(self._database.resolve()))}?mode=ro"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        jobs = b"".join(_job(query, TABLES[table], _file(place, table)) for table, query in self._queries.items())
        with uninterrupted.started(argv, **pipes) as child:
            self._child = child
            if self._stopped.is_set():
                raise LoadFailed("The load was stopped.")
            assert child.stdin is not None
            with child.stdin:
                child.stdin.write(jobs)
            yield child

    def _insert(self, db: duckdb.DuckDBPyConnection, child: subprocess.Popen[bytes], place: Path) -> None:
        """Insert the files as they are written."""
        import numpy  # noqa: F401 (updates need it: it is imported while the child works)

        assert child.stdout is not None
        db.execute("SET threads = 1")  # it would hold much of a file, and keep those who write to the store waiting
        for table in self._queries:
            answer = json.loads(child.stdout.readline() or '{"error": "The process has ended."}')
            if "error" in answer:
                raise LoadFailed(answer["error"])
            db.execute(f"INSERT INTO {table} SELECT * FROM read_parquet(?)", [str(_file(place, table))])
        db.execute("RESET threads")


@contextmanager
def _workplace(directory: Path) -> Iterator[Path]:
    """A temporary directory on the disk of the store. Also removes those that ended processes left.

    Raises:
        OSError: the directory cannot be written to.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    for abandoned in directory.glob(f"{_WORK}*"):
        with suppress(OSError):
            if time.time() - abandoned.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(abandoned, ignore_errors=True)
    with TemporaryDirectory(prefix=_WORK, dir=directory, ignore_cleanup_errors=True) as place:
        yield Path(place)


def _file(place: Path, table: str) -> Path:
    return place / f"{table}.parquet"


def _queries(last: int) -> dict[str, str]:
    """What SQLite runs for each table, the events first: they take longest."""
    return {
        "raw_events": _filled(SQL.events, last=last),
        **{mirror.table: _filled(mirror.rows, keys="NULL") for mirror in MIRRORS},
        **{mirror.table: _filled(mirror.rows, after=0, keys="'[]'") for mirror in NUMBERED},
    }


def _filled(query: Query, **values: int | str) -> str:
    """A query with expressions in place of its parameters."""
    text = query.sqlite
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
