"""Starts the children and hands them their jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workbench import uninterrupted

CHILDREN = 2
PROGRAM = "workbench.analytics.bulk.child"
_EXAMPLES = {"BIGINT": "0", "BOOLEAN": "0", "DOUBLE": "0.5", "VARCHAR": "''", "JSON": "'{}'"}


class ExtractionFailed(Exception):
    """A child could not copy rows: the disk is full, a package is missing, it was ended."""


@dataclass(frozen=True)
class Job:
    """Rows that are copied to a file.

    Attributes:
        query: what SQLite runs.
        columns: the columns of its rows, with their types in DuckDB.
    """

    query: str
    columns: Mapping[str, str]
    path: Path

    def line(self) -> bytes:
        """The job as its child reads it.

        ADBC infers the types of the columns from the first rows, where a column may be null throughout. So a row
        without nulls comes first, and is left out of the file.
        """
        examples = ", ".join(f"{_EXAMPLES[kind]} AS {name}" for name, kind in self.columns.items())
        names = ", ".join(self.columns)
        read = f"SELECT 1 AS is_example, {examples} UNION ALL SELECT 0, {names} FROM ({self.query})"
        casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in self.columns.items())
        job = {"read": read, "write": f"{casts} FROM rows WHERE is_example = 0", "path": str(self.path)}
        return json.dumps(job).encode() + b"\n"


class Children:
    """Child processes that do jobs, in order, several at once."""

    def __init__(self, database: Path, jobs: Sequence[Job]) -> None:
        self._database = f"file:{quote(str(database.resolve()))}?mode=ro"
        self._todo: deque[tuple[bytes, Future[int]]] = deque((job.line(), Future()) for job in jobs)
        self.copied = [future for _, future in self._todo]
        """The number of rows of each job, in order; a failed job raises `ExtractionFailed`."""
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()
        count = min(CHILDREN, os.cpu_count() or 1, len(jobs))
        self._threads = [threading.Thread(target=self._work, name="workbench-extract") for _ in range(count)]

    @contextmanager
    def working(self) -> Iterator[None]:
        """Run the children; none is left when the block ends."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self.stop()
            for thread in self._threads:
                thread.join()

    def stop(self) -> None:
        """End the children; the jobs that are not done fail. Callable from any thread."""
        self._stopped.set()
        for process in list(self._running):
            with suppress(ProcessLookupError):
                process.kill()

    def _work(self) -> None:
        try:
            argv = [sys.executable, "-P", "-m", PROGRAM, self._database]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            with uninterrupted.started(argv, **pipes) as process:
                self._running.add(process)
                self._hand_out(process)
                process.kill()
        except OSError as error:
            self._fail(str(error))

    def _hand_out(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        while not self._stopped.is_set():
            try:
                line, future = self._todo.popleft()
            except IndexError:
                return
            try:
                process.stdin.write(line)
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
            except (OSError, ValueError):
                answer = {"error": "The process has ended."}
            if "rows" in answer:
                future.set_result(answer["rows"])
            else:
                future.set_exception(ExtractionFailed(answer["error"]))
        self._fail("The load was stopped.")

    def _fail(self, reason: str) -> None:
        """Fail the jobs that nobody does any more."""
        while self._todo:
            with suppress(IndexError):
                self._todo.popleft()[1].set_exception(ExtractionFailed(reason))
