"""What `export` saved of views is queried with the values that it had, or refused with a code; the store has none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.analytics.conftest import rows
from tests.analytics.test_export import ada, save_files
from tests.conftest import Admitted
from workbench.analytics import export as exports
from workbench.analytics import exported
from workbench.analytics.export import ExportStop
from workbench.analytics.exported import FORMATS, SAVED, ExportCatalogue, found, tables_in
from workbench.analytics.live import Live
from workbench.analytics.mirrors import TABLES
from workbench.analytics.replica import Replica, insert
from workbench.app import Workbench
from workbench.errors import BadInput, Unavailable, WorkbenchError
from workbench.state.settings import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.long]

__all__ = ["ada"]

VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False, None],
    "BIGINT": [0, -(2**63), 2**63 - 1, None],
    "DOUBLE": ["-0.0", "Infinity", "NaN", "1.7976931348623157e308", "5e-324", None],
    "JSON": [
        '{"a": [1e400, 9223372036854775808, null, "\\u0000"]}',
        "[]",
        '"=1"',
        '"null"',
        "0.10",
        "[" * 64 + "]" * 64,
    ],
    "VARCHAR": [
        *("", "None", "null", "NULL", "nan", "007", "1e400", "=1+1", "'=1", "''-1", "'", "-", "\t=1", "+1", " x "),
        *("two\r\nlines\r", "\n", 'a,"b"', "\\N", "\\", "\ufeff", "é\N{PENGUIN}", "\x00", "[1]", "{}", "x" * 3_000),
    ],
}
"""Values that are hard to write down, by type."""

Attach = Callable[[Path], Replica]


@pytest.fixture
def attach() -> Iterator[Attach]:
    """Makes an export the catalogue `old` of a database that may read no file."""
    copy = Replica()

    def attached(place: Path) -> Replica:
        export = found(place)
        assert export is not None
        ExportCatalogue("old", export, copy.connection).fill()
        return copy

    yield attached
    copy.close()


def content(db: duckdb.DuckDBPyConnection, table: str) -> list[Any]:
    """The rows of a table as texts, so that NaN equals itself."""
    return db.execute(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {table} ORDER BY ALL").fetchall()


async def test_what_a_project_exported_is_queried_beside_it(
    workbench: Workbench, settings: Settings, ada: Admitted, tmp_path: Path
) -> None:
    for form in ("csv", "json"):
        await save_files(settings, tmp_path / form, form)
        assert tables_in(tmp_path / form) == list(SAVED)
        live = Live()
        await rows(live, workbench, "SELECT 1", projects={"old": tmp_path / form})
        with live.replica.connection() as db:
            for table in SAVED:
                assert (form, table, content(db, f"old.{table}")) == (form, table, content(db, table))
            described = [db.execute(f"DESCRIBE {place}attempts").fetchall() for place in ("", "old.")]
            assert [row[:2] for row in described[0]] == [row[:2] for row in described[1]]
    counts = "SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM old.tasks)"
    await workbench.call("cancel_task", task_id=2)
    assert await rows(live, workbench, counts) == [(9, 9)]
    assert await rows(live, workbench, "SELECT status FROM old.tasks WHERE id = 2") == [("pending",)]


@pytest.mark.parametrize("form", FORMATS)
def test_values_arrive_as_what_they_were(attach: Attach, tmp_path: Path, form: str) -> None:
    """Every column of every table has every value of its type that is hard to write down."""
    source = Replica(files=True)
    with source.connection() as db:
        most = max(map(len, VALUES.values()))
        for table, columns in TABLES.items():
            lines = [tuple(_cyclic(VALUES[kind], number) for kind in columns.values()) for number in range(most)]
            insert(db, table, columns, lines)
        written = [name for name in SAVED if name in TABLES]
        for table in written:
            exports._save(db, table, tmp_path / f"{table}.{form}", form, ExportStop())
        with attach(tmp_path).connection() as copy:
            for table in written:
                assert (table, content(copy, f"old.{table}")) == (table, content(db, table))
    source.close()


def _cyclic(values: Sequence[Any], number: int) -> Any:
    return values[number % len(values)]


def test_a_file_is_known_by_its_name_or_else_by_its_columns(attach: Attach, tmp_path: Path) -> None:
    """No two views have the same columns, but for a table that is copied as it is."""
    columns = {table: tuple(sorted(known)) for table, known in exported._kinds().items() if table != "raw_dependencies"}
    assert len({*columns.values()}) == len(columns)
    (tmp_path / "lost [1]*'.csv").write_text("task_id,depends_on\n7,1\n")
    assert content(attach(tmp_path / "lost [1]*'.csv").connection(), "old.dependencies") == [("7", "1")]
    (tmp_path / "raw_dependencies.CSV").write_text("task_id\r\n7\r\n")  # of an older Workbench
    db = attach(tmp_path / "raw_dependencies.CSV").connection()
    assert content(db, "old.raw_dependencies") == [("7", None)]
    with pytest.raises(duckdb.CatalogException):
        db.execute("FROM old.dependencies")  # the earlier export under this name is gone


EVENT = {
    "id": 1,
    "at": "2026-01-31T20:00:00+02:00",
    "kind": "k",
    "actor": "a",
    "subject": "s",
    "session": "",
    "data": {},
}


@pytest.mark.parametrize("form", ["csv", "json"])
def test_events_of_a_project_are_history_too(attach: Attach, tmp_path: Path, form: str) -> None:
    cells = [json.dumps(value) if isinstance(value, dict) else str(value) for value in EVENT.values()]
    texts = {"json": json.dumps([EVENT]), "csv": f"\ufeff{','.join(EVENT)}\r\n{','.join(cells)}\r\n"}
    (tmp_path / f"mine.{form}").write_text(texts[form])
    events = attach(tmp_path / f"mine.{form}").connection().execute("FROM old.events").fetchall()
    began = datetime(2026, 1, 31, 18, tzinfo=UTC)
    assert events == [(1, began, "k", "a", "s", "" if form == "json" else None, "{}")]


BAD: dict[str, tuple[str, bytes, str]] = {
    "cut in a value": ("dependencies.csv", b"task_id,depends_on\n1,2", "DAMAGED.*last line is not whole"),
    "cut in a line": ("dependencies.csv", b"task_id,depends_on\n1,2\n1\n", "DAMAGED.*Line: 3"),
    "cut in a quotation": ("sessions.csv", b'id,session\n"a,b\n', "DAMAGED.*Line"),
    "no header": ("dependencies.csv", b"", "DAMAGED.*first line"),
    "numbers for names": ("dependencies.csv", b"1,2\n1,2\n", "DAMAGED.*first line"),
    "a column twice": ("dependencies.csv", b"task_id,task_id\n1,2\n", "DAMAGED.*first line"),
    "UTF-16": ("dependencies.csv", "task_id,depends_on\n1,2\n".encode("utf-16"), "DAMAGED.*utf-8"),
    "Latin-1": ("sessions.csv", b"id,session\na,\xe9\n", "DAMAGED.*utf-8"),
    "half a number": ("dependencies.csv", b"task_id,depends_on\n1,1.5\n", "DAMAGED.*depends_on has 1.5, .*BIGINT"),
    "leading zeros": ("dependencies.csv", b"task_id,depends_on\n1,007\n", "DAMAGED.*depends_on has 007"),
    "too large": ("dependencies.csv", b"task_id,depends_on\n1,9223372036854775808\n", "DAMAGED.*9223372036854775808"),
    "infinite": ("run_metrics.csv", b"run_id,value\n1,1e400\n", "DAMAGED.*value has 1e400, which is no DOUBLE"),
    "no time": ("sessions.csv", b"id,created_at\na,today\n", "DAMAGED.*created_at has today"),
    "no JSON": ("events.csv", b"id,data\n1,{\n", "DAMAGED.*data has {"),
    "an address": ("sessions.csv", b"id,session\n\x1b]8;;\x07\n", "DAMAGED.*Line: 2"),
    "JSON, cut": ("dependencies.json", b'[{"task_id":1,"depends_on":2},\n', "DAMAGED.*last line is not whole"),
    "JSON lines, cut": ("dependencies.jsonl", b'{"task_id":1}\n{"task_id":', "DAMAGED.*last line"),
    "JSON of texts": ("dependencies.json", b'["task_id"]\n', "DAMAGED.*the same columns"),
    "JSON with other rows": ("dependencies.jsonl", b'{"task_id":1}\n{"depends_on":1}\n', "DAMAGED.*same columns"),
    "JSON with a name twice": ("dependencies.jsonl", b'{"task_id":1,"task_id":2}\n', "DAMAGED.*same columns"),
    "an object for a number": ("dependencies.jsonl", b'{"task_id":{"a":1}}\n', 'DAMAGED.*task_id has {"a":1}'),
    "deep JSON": (
        "dependencies.jsonl",
        b'{"task_id":' + b"[" * 99_999 + b"]" * 99_999 + b"}\n",
        "DAMAGED.*task_id has",
    ),
    "no Parquet": ("tasks.parquet", b"PAR1 and no more", "DAMAGED.*tasks.parquet"),
    "empty Parquet": ("tasks.parquet", b"", "DAMAGED.*tasks.parquet"),
    "newer": ("dependencies.csv", b"task_id,depends_on,colour\n", "UNKNOWN.*no column colour. If a newer Workbench"),
    "of anything": ("notes.csv", b"colour\nred\n", "UNKNOWN.*no view has just its columns"),
    "empty, of anything": ("notes.jsonl", b"", "UNKNOWN.*no view has just its columns"),
    "another form": ("tasks.xlsx", b"", "UNKNOWN.*is not named .parquet, .csv, .jsonl, .json"),
}


@pytest.mark.parametrize(("name", "written", "code"), BAD.values(), ids=BAD)
def test_a_file_that_is_not_as_export_saved_it_is_refused_with_a_code(
    attach: Attach, tmp_path: Path, name: str, written: bytes, code: str
) -> None:
    (tmp_path / "resources.csv").write_text("name\n")
    (tmp_path / name).write_bytes(written)
    with pytest.raises(BadInput, match=f"^EXPORT_{code}") as refused:
        attach(tmp_path / name)
    assert (str(tmp_path / name) in refused.value.message, "\x1b" in refused.value.message) == (True, False)
    if name.partition(".")[0] in SAVED and not name.endswith("xlsx"):
        with pytest.raises(BadInput, match="EXPORT_"):
            attach(tmp_path)
    with Replica().connection() as db, pytest.raises(duckdb.Error):
        db.execute("FROM old.resources")  # nothing of the others is there


def test_a_link_a_pipe_or_two_exports_in_a_directory_are_refused(attach: Attach, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("id,session\na,b\n")
    (place := tmp_path / "out").mkdir()
    for make in (partial(os.symlink, tmp_path / "secret"), os.mkfifo, Path.mkdir):
        make(place / "sessions.csv")
        with pytest.raises(BadInput, match=r"^EXPORT_UNSAFE.*sessions\.csv is not a regular file"):
            attach(place)
        (place / "sessions.csv").rename(tmp_path / f"moved-{make}".replace("/", ""))
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(BadInput, match="EXPORT_UNSAFE"):
        found(tmp_path / "pipe.csv")
    for form in ("csv", "jsonl"):
        (place / f"sessions.{form}").touch()
    with pytest.raises(BadInput, match=r"^EXPORT_UNKNOWN.*sessions\.csv and sessions\.jsonl"):
        attach(place)
    assert found(tmp_path / "nowhere") is None


async def test_an_export_stays_as_it_was_until_it_is_named_anew(workbench: Workbench, tmp_path: Path) -> None:
    live, file = Live(), tmp_path / "dependencies.csv"
    file.write_text("task_id,depends_on\n1,2\n")
    query, named = "SELECT count(*) FROM old.dependencies", {"old": file}
    assert await rows(live, workbench, query, projects=named) == [(1,)]
    file.write_text("task_id,depends_on\n1,2\n1,3\n")
    assert await rows(live, workbench, query) == [(1,)]
    assert await rows(live, workbench, query, projects=named) == [(2,)]
    with pytest.raises(BadInput, match="SQL_FAILED"):
        await rows(live, workbench, "DELETE FROM old.dependencies")
    live.replica.reset(live.replica.position)
    assert await rows(live, workbench, query) == [(2,)]
    file.write_text("task_id,depends_on\nx,2\n")
    with pytest.raises(BadInput, match="EXPORT_DAMAGED"):
        await rows(live, workbench, query, projects=named)
    file.unlink()
    with pytest.raises(WorkbenchError, match="NOT_A_DIRECTORY"):
        await rows(live, workbench, query, projects=named)
    assert await rows(live, workbench, "SELECT 1", projects={}) == [(1,)]


def test_what_does_not_fit_into_memory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "transcripts.parquet"
    with duckdb.connect() as db:
        db.execute(f"COPY (SELECT repeat('x', 1000000) AS content FROM range(300)) TO '{file}' (FORMAT parquet)")
        db.execute("SET memory_limit = '50MB'")
        export = found(file)
        assert export is not None
        with pytest.raises(Unavailable, match="EXPORT_TOO_LARGE"):
            ExportCatalogue("old", export, db.cursor).fill()
        assert db.execute("SELECT count(*) FROM duckdb_databases() WHERE database_name = 'old'").fetchone() == (0,)
