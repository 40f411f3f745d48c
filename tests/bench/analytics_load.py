"""Copies the store of B12 into DuckDB, or exports it, in a process of its own: as Workbench does, or ADBC alone."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from tests.bench.ws_load import p99
from workbench.analytics.export import FORMATS, export
from workbench.analytics.live import Live, refresh
from workbench.analytics.reports import QUERIES
from workbench.state.settings import Settings
from workbench.store.base import Store, Tx
from workbench.store.opening import open_store
from workbench.store.queries import beside
from workbench.system.interpreter import short_switches

SQL = beside(str(Path(__file__).with_name("b12.py")))
QUERY = """SELECT kind, count(*), avg(CAST(data->>'seconds' AS DOUBLE)),
    quantile_cont(CAST(data->>'seconds' AS DOUBLE), 0.99)
FROM events GROUP BY kind ORDER BY kind"""
EVENTS = "SELECT id, at, kind, actor, subject, session, data FROM events"
IDLE_SECONDS = 2.0


def workbench(store: Store, new: int) -> dict[str, float]:
    """Seconds of the first load and of questions, the most memory over before in MB, milliseconds of a refresh."""
    live, before = Live(), _peak()

    def asked(query: str) -> float:
        started = time.perf_counter()
        live.answer(asyncio.run(refresh(live, store)), query).fetchall()
        return time.perf_counter() - started

    load = asked("SELECT 1")
    held = _peak() - before
    query, report = asked(QUERY), asked((QUERIES / "totals.sql").read_text("utf-8"))
    asyncio.run(store.write(lambda tx: _add(tx, new)))
    return {"load": load, "memory": held, "query": query, "report": report, "refresh": asked("SELECT 1") * 1000}


def writers(store: Store) -> dict[str, float]:
    """The p99 of writes, in milliseconds: while nothing else is done, while the store is loaded, beside a bare copy."""
    copy = [sys.executable, "-m", __spec__.name, "bare", str(store.target), "0"]
    meanwhile: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
        "idle": lambda: asyncio.sleep(IDLE_SECONDS),
        "loading": lambda: refresh(Live(), store),
        "bare": lambda: asyncio.to_thread(subprocess.run, copy, check=True, stdout=subprocess.DEVNULL),
    }

    async def measured() -> dict[str, float]:
        return {name: p99(await _writes(store, asyncio.create_task(work()))) for name, work in meanwhile.items()}

    with short_switches(Settings.model_fields["switch_interval_seconds"].default):  # as while the servers run
        return asyncio.run(measured())


async def _writes(store: Store, meanwhile: asyncio.Task[Any]) -> list[float]:
    took = []
    while not meanwhile.done():
        started = time.perf_counter()
        await store.write(lambda tx: tx.emit("task.progress", "task:1", attempt=1))
        took.append(time.perf_counter() - started)
    await meanwhile
    return took


def exported(root: Path, form: str) -> dict[str, float]:
    """Seconds of a first export of everything that can be queried, and the most memory over before in MB."""
    settings, before = Settings(project=root, port=0), _peak()
    with TemporaryDirectory(dir=root) as directory:
        started = time.perf_counter()
        export(settings, Path(directory), form)
        return {"export": time.perf_counter() - started, "memory": _peak() - before}


def bare(path: str) -> dict[str, float]:
    """Seconds of a copy of the events, of the same query on it, and of its export alone."""
    started = time.perf_counter()
    with TemporaryDirectory() as place, duckdb.connect() as db:
        (_copy if Path(path).is_absolute() else _copy_from_postgres)(db, path, Path(place))
        load = time.perf_counter() - started
        db.execute("CREATE TABLE events AS SELECT * REPLACE (CAST(data AS JSON) AS data) FROM copied")
        started = time.perf_counter()
        db.execute(QUERY).fetchall()
        query = time.perf_counter() - started
        return {"load": load, "query": query} | {form: _copied(db, form, Path(place)) for form in ("parquet", "csv")}


def _copy(db: duckdb.DuckDBPyConnection, path: str, place: Path) -> None:
    """By ADBC."""
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(f"file:{path}?mode=ro") as source, source.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": "65536"})
        cursor.execute(EVENTS.replace("session", "coalesce(session, '') AS session"))
        db.register("rows", cursor.fetch_arrow())
        db.execute("CREATE TABLE copied AS SELECT * FROM rows")


def _copy_from_postgres(db: duckdb.DuckDBPyConnection, url: str, place: Path) -> None:
    """By COPY to a file of CSV."""
    import psycopg

    file = place / "events.csv"
    copy = f"COPY ({EVENTS}) TO STDOUT (FORMAT csv, HEADER)"
    with psycopg.connect(url) as source, source.cursor().copy(copy) as rows, file.open("wb") as copied:
        for row in rows:
            copied.write(row)
    db.execute(f"CREATE TABLE copied AS SELECT * FROM read_csv('{file}')")


def _copied(db: duckdb.DuckDBPyConnection, form: str, place: Path) -> float:
    with TemporaryDirectory(dir=place) as directory:
        started = time.perf_counter()
        db.execute(f"COPY events TO '{directory}/events' ({FORMATS[form]})")
        return time.perf_counter() - started


def _add(tx: Tx, count: int) -> None:
    tx.run(SQL.add_events, count=count, now=tx.now, tasks=100)


def _peak() -> float:
    """The most memory of this process, in MB; `ru_maxrss` would be that of the process which started it, if larger."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    assert match is not None
    return int(match[1]) / 1024


def main(what: str, path: str, new: str) -> None:
    """Measure one contestant, and print what was found."""
    if what == "bare":
        print(json.dumps(bare(path)))
        return
    if what in FORMATS:
        print(json.dumps(exported(Path(path).parents[1], what)))
        return
    with closing(open_store(Path(path) if Path(path).is_absolute() else path)) as store:
        print(json.dumps(workbench(store, int(new)) if what == "workbench" else writers(store)))


if __name__ == "__main__":
    main(*sys.argv[1:])
