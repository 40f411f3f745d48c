"""The program of the child of a first load: copies rows of a SQLite file to Parquet files.

It is a process of its own because ADBC brings a second SQLite library, which would break the file locks of the first.
It reads a job per line of its input, ``{"read": …, "write": …, "path": …}``. It answers each with two lines, ``{"path":
…}`` when the file is complete and ``{"rows": …}``, or with ``{"error": …}``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

BATCH_ROWS = "8192"


def main(database: str) -> None:
    """Do the jobs of the input.

    Args:
        database: the URI of the SQLite file.
    """
    os.umask(0o077)
    import duckdb
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(database) as source, duckdb.connect(config={"threads": "1"}) as target:
        for line in sys.stdin:
            job = json.loads(line)
            try:
                answers = [{"path": job["path"]}, _copy(source, target, **job)]
            except Exception as error:
                answers = [{"error": f"{type(error).__name__}: {error}"}]
            sys.stdout.writelines(f"{json.dumps(answer)}\n" for answer in answers)
            sys.stdout.flush()


def _copy(source: Any, target: Any, read: str, write: str, path: str) -> dict[str, Any]:
    """Copy the rows of a query.

    Args:
        read: the query, for SQLite.
        write: the expressions of DuckDB that make the columns of the file from those of the query, and a condition.
    """
    with source.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": BATCH_ROWS})
        cursor.execute(read)
        target.register("rows", cursor.fetch_arrow())
        try:
            quoted = path.replace("'", "''")
            (count,) = target.execute(
                f"COPY (SELECT {write}) TO '{quoted}' (FORMAT parquet, COMPRESSION snappy)"
            ).fetchone()
        finally:
            target.unregister("rows")
    return {"rows": count}


if __name__ == "__main__":
    main(sys.argv[1])
