"""SQL queries of a person: parameters, dataframes, temporary views, limits and interrupts."""

from __future__ import annotations

import json
import signal
import threading
from datetime import datetime
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy
import pandas
import pytest

from tests import given
from tests.analytics.conftest import rows
from workbench.analytics import results
from workbench.analytics.live import Live, refresh
from workbench.analytics.questions import SqlQuestion, answer
from workbench.app import Workbench
from workbench.errors import BadInput, Unavailable

pytestmark = pytest.mark.anyio

ENDLESS = "SELECT count(*) FROM range(100000000000) a, range(1000) b WHERE a.range + b.range = 7"


@pytest.fixture
async def workbench(workbench: Workbench) -> Workbench:
    """An open project with three tasks."""
    for title in ("Count", "Weigh", "Measure"):
        await given.task(workbench, title)
    return workbench


async def test_parameters_are_values_and_others_are_ignored(workbench: Workbench) -> None:
    query = "SELECT id FROM tasks WHERE title = $title AND id < $most"
    values = {"title": "Weigh", "most": 3, "unused": object()}
    assert await rows(Live(), workbench, query, values=values) == [(2,)]
    text = "x'; DROP VIEW tasks; --"
    assert await rows(Live(), workbench, "SELECT $t", values={"t": text}) == [(text,)]
    query = "CREATE TEMP VIEW one AS SELECT 1 AS n; SELECT n + $n FROM one"  # the last statement is answered
    assert await rows(Live(), workbench, query, values={"n": 2}) == [(3,)]


VALUES = [
    (numpy.int64(3), 3),
    (numpy.float32(0.5), 0.5),
    (numpy.bool_(True), True),
    ([numpy.int64(1), 2], [1, 2]),
    ({"x"}, ["x"]),
    (Path("a/b"), "a/b"),
    (numpy.datetime64("2026-01-02", "ns"), datetime(2026, 1, 2)),
    (pandas.Series([1, 2]), [1, 2]),
]


@pytest.mark.parametrize(("given_value", "arrives"), VALUES)
def test_a_parameter_keeps_its_type_in_sql(given_value: object, arrives: object) -> None:
    with duckdb.connect() as db:
        found = answer(db, SqlQuestion("SELECT $m", {"m": given_value}))
        assert found is not None
        assert found.fetchall() == [(arrives,)]


def test_sums_of_whole_numbers_are_whole_and_exact() -> None:
    most = 2**127 - 1
    values = f"(VALUES (9007199254740993, {most}::HUGEINT)) t(i, h)"
    with duckdb.connect() as db:
        frame = results.as_frame(db.sql(f"SELECT sum(i) s, sum(h) h, avg(i) a FROM {values}").materialize())
        assert [*map(str, frame.dtypes)] == ["int64", "object", "float64"]
        assert frame.iloc[0, :2].tolist() == [9007199254740993, most]
        empty = results.as_frame(db.sql("SELECT sum(i) s FROM range(0) t(i)").materialize())
        assert [*map(str, empty.dtypes)] == ["Int64"]
        assert empty["s"].isna().tolist() == [True]


async def test_a_missing_parameter_is_named_and_one_without_an_sql_type_is_refused(
    workbench: Workbench,
) -> None:
    live = Live()
    for query, name in (("SELECT ?", "1"), ("SELECT $1", "1"), ("SELECT $a, $title", "title")):
        with pytest.raises(BadInput, match=rf"^SQL_FAILED: No value for \${name}\."):
            await rows(live, workbench, query, values={"a": 1})
    with pytest.raises(BadInput, match="SQL_FAILED"):
        await rows(live, workbench, "SELECT $live", values={"live": live})


async def test_temporary_views_stay_and_follow_the_project_and_dataframes(workbench: Workbench) -> None:
    live = Live()
    assert await rows(live, workbench, "CREATE TEMP VIEW short AS SELECT title FROM tasks WHERE id < 3") is None
    assert await rows(live, workbench, "SELECT count(*) FROM short") == [(2,)]
    await workbench.call("cancel_task", task_id=1)
    states = await rows(live, workbench, "FROM short JOIN tasks USING (title) SELECT status ORDER BY id")
    assert states == [("cancelled",), ("pending",)]
    with pytest.raises(BadInput, match="SQL_FAILED"):
        await rows(live, workbench, "CREATE VIEW lasting AS SELECT 1")
    frames = {"weights": pandas.DataFrame({"id": [1, 2], "kilograms": [3, 4]})}
    view = "CREATE TEMP VIEW heavy AS SELECT title FROM tasks JOIN weights USING (id) WHERE kilograms > 3"
    await rows(live, workbench, view, frames=frames)
    assert await rows(live, workbench, "FROM heavy", frames=frames) == [("Weigh",)]
    frames["weights"]["kilograms"] += 1
    assert await rows(live, workbench, "SELECT count(*) FROM heavy", frames=frames) == [(2,)]


async def test_no_temporary_view_hides_a_dataframe_and_no_dataframe_replaces_a_temporary_view(
    workbench: Workbench,
) -> None:
    live, heavy = Live(), pandas.DataFrame({"title": ["Ton"]})
    await rows(
        live, workbench, "CREATE TEMP VIEW heavy AS SELECT title FROM tasks WHERE id = 2", frames={"Heavy": heavy}
    )
    await rows(live, workbench, "CREATE TEMP VIEW all_heavy AS FROM heavy")
    alike = "heavy is a temporary view and your DataFrame Heavy. Write temp.heavy"
    for query in (
        "FROM heavy",
        "FROM all_heavy",
        "CREATE OR REPLACE TEMP VIEW heavy AS FROM heavy",
        "CREATE OR REPLACE TEMP VIEW heavy AS SELECT 1; FROM heavy",
    ):
        with pytest.raises(BadInput, match=alike):
            await rows(live, workbench, query, frames={"Heavy": heavy})
    assert await rows(live, workbench, "FROM temp.heavy", frames={"Heavy": heavy}) == [("Weigh",)]
    assert await rows(live, workbench, "FROM heavy", frames={"heavier": heavy}) == [("Weigh",)]
    await rows(live, workbench, "DROP VIEW heavy", frames={"Heavy": heavy})
    with pytest.raises(BadInput, match="Heavy is a temporary view"):
        await rows(live, workbench, "CREATE TEMP TABLE IF NOT EXISTS heavy AS FROM Heavy", frames={"heavy": heavy})


async def test_an_endless_query_ends_at_its_limit(workbench: Workbench) -> None:
    live = Live()
    with pytest.raises(Unavailable, match="SQL_TOO_SLOW"):
        await rows(live, workbench, ENDLESS, seconds=0.1)
    assert await rows(live, workbench, "SELECT count(*) FROM tasks", seconds=60) == [(3,)]


async def test_an_interrupt_ends_an_endless_query_and_the_next_one_is_answered(workbench: Workbench) -> None:
    live = Live()
    await rows(live, workbench, "CREATE TEMP VIEW kept AS SELECT 1")
    main = threading.main_thread().ident
    assert main is not None
    update = await refresh(live, workbench.store)
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()
        live.run(update, SqlQuestion(ENDLESS))
    assert await rows(live, workbench, "FROM kept") == [(1,)]


async def test_results_come_as_frames_of_the_chosen_library(workbench: Workbench) -> None:
    live = Live()
    ask = partial(live.answer, await refresh(live, workbench.store))
    tasks = ask("SELECT id, title, created_at FROM tasks ORDER BY id")
    assert results.converted(tasks, "pandas")["title"].tolist() == ["Count", "Weigh", "Measure"]
    spans = ask('SELECT 1 AS one, INTERVAL 90 SECOND AS "a ""b", NULL::INTERVAL AS c')
    assert results.intervals(spans) == ['a "b', "c"], "numbers for a library that has none"
    assert results.in_microseconds(spans, results.intervals(spans)).fetchall() == [(1, 90_000_000, None)]
    with pytest.raises(BadInput, match=r"UNKNOWN_LIBRARY.*pandas, polars, arrow"):
        results.check("spark")
    results.check("pandas")
    for library, package in (("polars", "polars"), ("arrow", "pyarrow")):
        if find_spec(package):
            ids = results.converted(tasks, library)["id"]
            assert (ids.to_pylist() if library == "arrow" else ids.to_list()) == [1, 2, 3]
        else:
            with pytest.raises(Unavailable, match=rf"LIBRARY_MISSING.*pip install {package}"):
                results.check(library)
    if find_spec("polars"):
        assert [str(kind) for kind in results.converted(spans, "polars").dtypes[1:]] == ["Duration(time_unit='us')"] * 2


def test_data_of_an_answer_has_the_types_of_json() -> None:
    query = (
        "SELECT 7 AS n, 1.5 AS x, -'inf'::DOUBLE AS inf, "
        "NULL AS nothing, true AS yes, 'nan'::DOUBLE AS nan, '{\"a\": [null]}'::JSON AS j, "
        "[1, NULL] AS l, {'b': 0.5} AS s, INTERVAL 90 MINUTE AS i, DATE '2026-01-02' AS d, "
        "TIMESTAMPTZ '2026-01-02 03:04:05.5+01' AS t, uuid '00000000-0000-0000-0000-000000000001' AS u"
    )
    found = duckdb.sql(query)
    assert results.as_data(found, found.fetchall()) == [
        {
            **{"n": 7, "x": 1.5, "inf": "-Infinity", "nothing": None, "yes": True, "nan": None, "j": {"a": [None]}},
            **{"l": [1, None], "s": {"b": 0.5}, "i": 5400.0, "d": "2026-01-02"},
            **{"t": "2026-01-02T02:04:05.500000Z", "u": "00000000-0000-0000-0000-000000000001"},
        }
    ]


def test_decimals_bytes_and_times_keep_their_exact_values() -> None:
    most = 2**127 - 1
    query = (
        "SELECT 98765432109876543.21 AS d, 1.50 AS n, '\\xAA\\xFF'::BLOB AS b, -0.0::DOUBLE AS z, "
        f"[{most}::HUGEINT] AS h, '2026-01-02 03:04:05.123456789'::TIMESTAMP_NS AS ns, 'infinity'::TIMESTAMPTZ AS t, "
        "'-infinity'::DATE AS day, ['infinity'::TIMESTAMP] AS l, {'a': DATE '2026-01-02'} AS s"
    )
    with duckdb.connect() as db:
        found = db.sql(query).materialize()
        data = results.as_data(found, results.fetched(found))
        frame = results.as_frame(found)
    assert json.dumps(data, allow_nan=False) == json.dumps(
        [
            {
                **{"d": "98765432109876543.21", "n": 1.5, "b": "qv8=", "z": -0.0, "h": [most]},
                **{"ns": "2026-01-02T03:04:05.123456789", "t": "Infinity", "day": "-Infinity"},
                **{"l": ["Infinity"], "s": {"a": "2026-01-02"}},
            }
        ]
    )
    assert frame[["t", "day", "d", "n"]].iloc[0].tolist() == [
        *("Infinity", "-Infinity", Decimal("98765432109876543.21"), 1.5)
    ]
    assert "Infinity" in repr(frame[["t", "day"]])
    given.refused("SQL_FAILED", results.as_frame, duckdb.sql("SELECT '12:00:00+02'::TIMETZ AS t"))
