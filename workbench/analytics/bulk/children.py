"""Starts the children and hands them their jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
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
    """Child processes that do jobs, in the order in which they come, several at once.

    They begin at once, before there are jobs: it takes them a while to import what they need.
    """

    def __init__(self, database: Path) -> None:
        self._database = f"file:{quote(str(database.resolve()))}?mode=ro"
        self._todo: SimpleQueue[tuple[bytes, Future[int]] | None] = SimpleQueue()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopping = threading.Lock()
        self._is_stopped = False
        count = min(CHILDREN, os.cpu_count() or 1)
        self._threads = [threading.Thread(target=self._work, name="workbench-extract") for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def copy(self, job: Job) -> Future[int]:
        """Have a job done: the number of its rows; a failed job raises `ExtractionFailed`.

        Raises:
            ExtractionFailed: the children were stopped.
        """
        future: Future[int] = Future()
        with self._stopping:
            if self._is_stopped:
                raise ExtractionFailed("The load was stopped.")
            self._todo.put((job.line(), future))
        return future

    def stop(self) -> None:
        """End the children; the jobs that are not done fail. Callable from any thread, and twice."""
        with self._stopping:
            self._is_stopped = True
            self._todo.put(None)
            for process in list(self._running):
                with suppress(ProcessLookupError):
                    process.kill()

    def close(self) -> None:
        """Stop, and wait until no child is left."""
        self.stop()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        try:
            argv = [sys.executable, "-P", "-m", PROGRAM, self._database]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            with uninterrupted.started(argv, keeps_session=True, **pipes) as process:
                self._running.add(process)
                if self._is_stopped:
                    process.kill()
                for line, future in self._jobs():
                    _hand_over(process, line, future)
                process.kill()
        except OSError as error:
            for _, future in self._jobs():
                future.set_exception(ExtractionFailed(str(error)))

    def _jobs(self) -> Iterator[tuple[bytes, Future[int]]]:
        while (job := self._todo.get()) is not None:
            yield job
        self._todo.put(None)  # every thread is to find it


def _hand_over(process: subprocess.Popen[bytes], line: bytes, future: Future[int]) -> None:
    """Have a child do a job."""
    assert process.stdin is not None
    assert process.stdout is not None
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
