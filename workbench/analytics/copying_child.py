"""The program of the child of a first load from PostgreSQL: copies rows of a database to CSV files.

The copies are of one snapshot. It is a process of its own because psycopg hands over row by row, with Python's lock.
The first line of its input is ``{"target": …, "jobs": [{"copy": …, "path": …}, …]}``: the password in the target is
neither in its arguments nor in its environment. It answers with a line for each file that is complete,
``{"path": …, "bytes": …}``, for each job, ``{"rows": …}``, and ``{"error": …}`` if it has to end. Of the files that
are not taken yet, each with an empty line of input, there are few: they take little of the disk.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PART_BYTES = 16_000_000
PARTS = 3
"""So many files may wait."""


def main() -> None:
    """Do the jobs of the input."""
    os.umask(0o077)
    told = json.loads(sys.stdin.readline())
    waiting = 0
    for answer in _answers(told["target"], told["jobs"]):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        waiting += "path" in answer
        if waiting == PARTS:
            sys.stdin.readline()
            waiting -= 1


def _answers(target: str, jobs: list[dict[str, str]]) -> Iterator[dict[str, Any]]:
    try:
        from workbench.store.postgres_connection import Connector

        db = Connector(target).connect(patience=0).raw
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for job in jobs:
            with db.cursor() as cursor:
                yield from _copy(cursor, **job)
                yield {"rows": cursor.rowcount}
    except Exception as error:
        yield {"error": f"{type(error).__name__}: {error}"}


def _copy(cursor: Any, copy: str, path: str) -> Iterator[dict[str, Any]]:
    """Copy the rows of a statement to files that end between rows; at least one is told, which may be empty.

    Args:
        path: that of the first one; the others have numbers.
    """
    with cursor.copy(copy) as rows:
        blocks, number, is_over = iter(rows), 0, False
        while not is_over:
            part, size = Path(f"{path}.{number}"), 0
            with part.open("wb") as file:
                while size < PART_BYTES and not (is_over := (block := next(blocks, None)) is None):
                    size += file.write(block)
            yield {"path": str(part), "bytes": size}
            number += 1


if __name__ == "__main__":
    main()
