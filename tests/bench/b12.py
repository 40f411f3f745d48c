"""B12: the events of a large project in DuckDB: the first load, a report, what is new, and an export."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.bench.child import Child
from tests.bench.project import fill, prepare, scratch
from tests.bench.rows import Row, Samples, at_most, within
from tests.postgres import installed, running_server
from workbench.store.base import Tx
from workbench.store.opening import open_store
from workbench.store.queries import beside

SQL = beside(__file__)
EVENTS, TASKS = 1_000_000, 100_000
FORMS = {"parquet": "Parquet", "csv": "CSV"}
COPIED = "COPY of the events alone, from a native DuckDB table"


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Each contestant is a process of its own, one after the other in each round."""
    events, new = (30_000, 300) if quick else (EVENTS, 10_000)
    binaries = installed()
    with scratch() as directory:
        database = prepare(directory / "seed", agents=1, tasks=0).root / ".aiswarm" / "coordination.db"
        measured = _on_sqlite(rounds, database, events, new)
        if binaries is None:
            return measured
        with running_server(binaries) as server, server.new_database() as name:
            prepare(directory / "postgres", agents=1, tasks=0, database_url=server.url(name))
            on_postgres = _on_postgres(rounds, server.url(name), events, new)
    return measured | {f"on PostgreSQL, {line}": samples for line, samples in on_postgres.items()}


def _on_postgres(rounds: int, url: str, events: int, new: int) -> dict[str, Samples]:
    fill_store(url, events, events * TASKS // EVENTS)
    turns = [[_measured(what, url, new) for what in ("workbench", "bare", "writers")] for _ in range(rounds)]
    ours, bare, writers = map(list, zip(*turns, strict=True))
    return _loaded(ours, bare, "a bare COPY to a file of CSV, which DuckDB reads") | _written(writers)


def _on_sqlite(rounds: int, database: Path, events: int, new: int) -> dict[str, Samples]:
    ours, bare, writers = [], [], []
    exports: dict[str, list[dict[str, float]]] = {form: [] for form in FORMS}
    fill_store(database, events, events * TASKS // EVENTS)
    for _ in range(rounds):
        ours.append(_measured("workbench", database, new))
        bare.append(_measured("bare", database, new))
        writers.append(_measured("writers", database, new))
        for form, made in exports.items():
            made.append(_measured(form, database, new))
    return {
        **_loaded(ours, bare, ROW.counterpart),
        "a query of events": Samples(
            _column(ours, "query"), _column(bare, "query"), "s", "the same on a native DuckDB table"
        ),
        "a standard report": _alone(_column(ours, "report"), "s"),
        **_written(writers),
        **{
            f"an export to {name}": Samples(_column(exports[form], "export"), _column(bare, form), "s", COPIED)
            for form, name in FORMS.items()
        },
        **{
            f"memory of an export to {name}": _alone(_column(exports[form], "memory"), "MB")
            for form, name in FORMS.items()
        },
    }


def _loaded(
    ours: Sequence[Mapping[str, float]], bare: Sequence[Mapping[str, float]], against: str
) -> dict[str, Samples]:
    loads = _column(ours, "load")
    return {
        "the first load": Samples(loads, _column(bare, "load"), "s", against),
        "the first load, in seconds": _alone(loads, "s"),
        "memory of the first load": _alone(_column(ours, "memory"), "MB"),
        "10,000 new events": _alone(_column(ours, "refresh"), "ms"),
    }


def _written(writers: Sequence[Mapping[str, float]]) -> dict[str, Samples]:
    loading, beside_bare, idle = (_column(writers, name) for name in ("loading", "bare", "idle"))
    return {
        "p99 of writers during the first load": Samples(loading, beside_bare, "ms", "beside that bare copy"),
        "p99 of writers beside a bare copy": Samples(beside_bare, idle, "ms", "without the copy"),
    }


def _column(rounds: Sequence[Mapping[str, float]], name: str) -> list[float]:
    return [figures[name] for figures in rounds]


def _alone(figures: Sequence[float], unit: str) -> Samples:
    return Samples(figures, unit=unit, against="–")


def fill_store(database: Path | str, events: int, tasks: int) -> None:
    """Add events, and tasks that they are about, to a store."""

    def change(tx: Tx) -> None:
        fill(tx, tasks, mixed=True)
        tx.run(SQL.add_events, count=events, now=tx.now, tasks=tasks)

    with closing(open_store(database)) as store:
        asyncio.run(store.write(change))


def _measured(what: str, database: Path | str, new: int) -> Any:
    with Child("analytics_load", what, str(database), str(new)) as child:
        return child.hear()


LOADING = {
    "the first load": at_most(2.5),
    "the first load, in seconds": within(4, "s"),
    "memory of the first load": within(400, "MB"),
    "10,000 new events": within(100, "ms"),
    "p99 of writers during the first load": at_most(1.5),
}
ROW = Row(
    "B12",
    "a million events in DuckDB",
    "a bare copy by ADBC in its own process",
    {
        **LOADING,
        "a query of events": at_most(1.2),
        "a standard report": within(1, "s"),
        "an export to Parquet": within(3, "s"),
        "an export to CSV": within(10, "s"),
        "memory of an export to Parquet": within(400, "MB"),
        "memory of an export to CSV": within(400, "MB"),
        **{f"on PostgreSQL, {line}": bar for line, bar in LOADING.items()},
    },
    run,
)
