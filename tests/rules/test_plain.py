"""Values of Python and its libraries keep their type and value, or are refused: in results and arguments of tools, in
parameters of queries and of runs, and as metrics."""

from __future__ import annotations

import base64
import json
import math
from collections import deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import altair
import duckdb
import numpy
import pandas
import pytest
from IPython.display import Image
from pydantic import BaseModel

from tests.given import refused
from workbench.analytics.questions import SqlQuestion, answer
from workbench.recording import values
from workbench.rules.tools.arguments import problems
from workbench.rules.tools.function import function_tool
from workbench.rules.tools.returned import returned
from workbench.rules.wire.arguments import plain

LIMIT, ROWS = 1_000_000, 1_000
PNG = b"\x89PNG\r\n\x1a\n picture"


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: float
    tags: set[str] = field(default_factory=set)


class Model(BaseModel):
    size: numpy.float32 | int = 3  # type: ignore[type-arg]
    model_config = {"arbitrary_types_allowed": True}


def of(library: str, name: str, **what: Any) -> Any:
    """An object as a library that is not installed here has it."""
    return type(name, (), {"__module__": f"{library}.core", **what})()


ROWS_OF_TWO = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
POLARS = of(
    "polars",
    "DataFrame",
    columns=["a", "b"],
    to_dicts=lambda _: ROWS_OF_TWO,
    __len__=lambda _: 2,
    __getitem__=lambda me, _: me,
)
ARROW = of(
    "pyarrow",
    "Table",
    columns=["a", "b"],
    to_pylist=lambda _: ROWS_OF_TWO,
    __len__=lambda _: 2,
    __getitem__=lambda me, _: me,
)
SCALAR = of("pyarrow", "Int64Scalar", as_py=lambda _: 7)
TENSOR = of("torch", "Tensor", tolist=lambda _: [1.5, 2.0], __len__=lambda _: 2, __getitem__=lambda me, _: me)
SPARSE = of("scipy", "csr_matrix", dtype=numpy.dtype("f8"))
FIGURE = of("matplotlib", "Figure", savefig=lambda _, into, format: into.write(PNG))
AXES = of("matplotlib", "Axes", get_figure=lambda _: FIGURE)
PIL = of("PIL", "Image", _repr_png_=lambda _: PNG)
FRAME = pandas.DataFrame({"a": [1, 2], "b": ["x", None]})
PICTURE = object()
"""Stands for a picture in a result."""


@dataclass
class Row:
    """A value, and what it is in each place, or the code of its refusal. `...`: as in a result; in SQL: not tried."""

    value: Any
    result: Any
    sql: Any
    metric: Any = "NOT_A_METRIC"
    argument: Any = ...
    parameter: Any = ...


NO_ARGUMENT, NO_PARAMETER, NO_SQL, NO_RESULT = (
    "INVALID_ARGUMENTS",
    "NOT_A_PARAMETER",
    "SQL_FAILED",
    "TOOL_RESULT_INVALID",
)
REFUSALS = {NO_ARGUMENT, NO_PARAMETER, NO_SQL, NO_RESULT, "NOT_A_METRIC"}
DAY, MOMENT = date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
TABLE = {
    "None": Row(None, None, None),
    "bool": Row(True, True, True, 1.0),
    "large int": Row(2**70, 2**70, 2**70, float(2**70)),
    "NaN": Row(math.nan, "NaN", math.nan, "NaN"),
    "infinity": Row(-math.inf, "-Infinity", -math.inf, "-Infinity"),
    "decimal": Row(Decimal("0.10"), 0.1, Decimal("0.10"), 0.1),
    "long decimal": Row(
        *[Decimal("98765432109876543.21")],
        "98765432109876543.21",
        Decimal("98765432109876543.21"),
        98765432109876543.21,
    ),
    "longer decimal": Row(Decimal("0." + "123" * 15), "0." + "123" * 15, NO_SQL, float("0." + "123" * 15)),
    "whole decimal": Row(Decimal(3), 3, Decimal(3), 3.0),
    "date": Row(DAY, "2026-01-02", DAY),
    "datetime": Row(MOMENT, "2026-01-02T03:04:05.000006+00:00", MOMENT),
    "time": Row(time(1, 2), "01:02:00", time(1, 2)),
    "timedelta": Row(timedelta(days=1, seconds=2), "P1DT2S", timedelta(days=1, seconds=2)),
    "uuid": Row(UUID(int=1), str(UUID(int=1)), UUID(int=1)),
    "path": Row(Path("a/b"), "a/b", "a/b"),
    "enum": Row(Colour.RED, "red", "red", "red"),
    "int enum": Row(Level.HIGH, 3, 3, 3.0),
    "dataclass": Row(Point(1.5, {"b", "a"}), {"x": 1.5, "tags": ["a", "b"]}, NO_SQL),
    "model": Row(Model(size=numpy.float32(0.5)), {"size": 0.5}, NO_SQL),
    "namespace": Row(SimpleNamespace(a=1), {"a": 1}, NO_SQL),
    "named tuple": Row(namedtuple("Pair", "a b")(1, 2), [1, 2], [1, 2], [1.0, 2.0]),
    "set": Row({2, 1}, [1, 2], [1, 2]),
    "range": Row(range(3), [0, 1, 2], [0, 1, 2]),
    "deque": Row(deque([1]), [1], NO_SQL),
    "bytes": Row(b"\xff", "/w==", b"\xff", argument=NO_ARGUMENT, parameter=NO_PARAMETER),
    "complex": Row(1 + 2j, "(1+2j)", NO_SQL),
    "object": Row(object(), NO_RESULT, NO_SQL, argument=NO_ARGUMENT, parameter=NO_PARAMETER),
    "function": Row(numpy.mean, NO_RESULT, NO_SQL, argument=NO_ARGUMENT, parameter="numpy.mean"),
    "within itself": Row(
        (endless := [1], endless.append(endless), endless)[2],
        NO_RESULT,
        NO_SQL,
        argument=NO_ARGUMENT,
        parameter=NO_PARAMETER,
    ),
    "keys that are one as text": Row({1: 1, "1": 2}, NO_RESULT, ..., argument=NO_ARGUMENT, parameter=NO_PARAMETER),
    "NumPy int": Row(numpy.int64(3), 3, 3, 3.0),
    "NumPy float32": Row(numpy.float32(1.5), 1.5, 1.5, 1.5),
    "NumPy bool": Row(numpy.bool_(True), True, True, 1.0),
    "NumPy text": Row(numpy.str_("a"), "a", "a", "a"),
    "NumPy long double": Row(numpy.longdouble(1.5), 1.5, 1.5, 1.5),
    "NumPy date": Row(numpy.datetime64("2026-01-02"), "2026-01-02", DAY),
    "NumPy nanoseconds": Row(
        numpy.datetime64(1, "ns"),
        "1970-01-01T00:00:00.000000001",
        "1970-01-01T00:00:00.000000001",
        "1970-01-01T00:00:00.000000001",
    ),
    "NumPy NaT": Row(numpy.datetime64("NaT"), None, None),
    "NumPy duration": Row(numpy.timedelta64(1500, "ms"), "P0DT1.5S", timedelta(seconds=1.5)),
    "array": Row(numpy.array([1, 2]), [1, 2], [1, 2], [1.0, 2.0]),
    "array of two dimensions": Row(numpy.eye(2), [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]),
    "array with NaN": Row(numpy.array([1, math.nan]), [1.0, "NaN"], ..., [1.0, "NaN"]),
    "array of records": Row(numpy.array([(1, 2.5)], dtype="i4,f8"), [{"f0": 1, "f1": 2.5}], [{"f0": 1, "f1": 2.5}]),
    "array of dates": Row(
        numpy.array(["2026-01-02T03:00"], "M8[ns]"), ["2026-01-02T03:00:00"], [datetime(2026, 1, 2, 3)]
    ),
    "series": Row(pandas.Series([1, 2]), [1, 2], [1, 2], [1.0, 2.0]),
    "series with an index": Row(pandas.Series([1], ["x"]), {"x": 1}, [1], [1.0]),
    "series with times in a zone": Row(
        pandas.Series([pandas.Timestamp(MOMENT)]), ["2026-01-02T03:04:05.000006+00:00"], [MOMENT]
    ),
    "timestamp with nanoseconds": Row(
        pandas.Timestamp(1),
        "1970-01-01T00:00:00.000000001",
        "1970-01-01T00:00:00.000000001",
        "1970-01-01T00:00:00.000000001",
    ),
    "pandas duration": Row(pandas.Timedelta(1, "s"), "P0DT0H0M1S", timedelta(seconds=1)),
    "NA": Row(pandas.NA, None, None),
    "NaT": Row(pandas.NaT, None, None),
    "period": Row(pandas.Period("2026-01"), "2026-01", "2026-01", "2026-01"),
    "categories": Row(pandas.Categorical(["a"]), ["a"], ["a"], ["a"]),
    "DataFrame": Row(FRAME, ROWS_OF_TWO, NO_SQL, parameter=NO_PARAMETER),
    "DataFrame with an index": Row(FRAME.groupby("b").sum(), [{"b": "x", "a": 1}], NO_SQL, parameter=NO_PARAMETER),
    "DataFrame with a name twice": Row(
        pandas.concat([FRAME, FRAME], axis=1), NO_RESULT, NO_SQL, argument=NO_ARGUMENT, parameter=NO_PARAMETER
    ),
    "Polars": Row(POLARS, ROWS_OF_TWO, NO_SQL, parameter=NO_PARAMETER),
    "Arrow": Row(ARROW, ROWS_OF_TWO, NO_SQL, parameter=NO_PARAMETER),
    "Arrow scalar": Row(SCALAR, 7, 7, 7.0),
    "tensor": Row(TENSOR, [1.5, 2.0], [1.5, 2.0], [1.5, 2.0]),
    "sparse matrix": Row(SPARSE, NO_RESULT, NO_SQL, argument=NO_ARGUMENT, parameter=NO_PARAMETER),
    "figure": Row(FIGURE, PICTURE, NO_SQL, argument=NO_ARGUMENT, parameter=NO_PARAMETER),
    "axes": Row(AXES, PICTURE, NO_SQL, argument=NO_ARGUMENT, parameter=NO_PARAMETER),
    "picture of PIL": Row(PIL, PICTURE, NO_SQL, argument=NO_ARGUMENT, parameter=NO_PARAMETER),
    "picture of IPython": Row(Image(PNG, format="png"), PICTURE, NO_SQL, argument=NO_ARGUMENT, parameter=NO_PARAMETER),
}


def _result(value: Any) -> Any:
    made = returned(None).answer(value, LIMIT, ROWS)
    picture = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    return PICTURE if made.content == [picture] else made.value


def _argument(value: Any) -> Any:
    return plain("call_tool", {"x": value})["x"]


def _in_sql(value: Any) -> Any:
    with duckdb.connect() as db:
        found = answer(db, SqlQuestion("SELECT $m", {"m": value}))
        assert found is not None
        return found.fetchall()[0][0]


def _parameter(value: Any) -> Any:
    return values.parameters({"x": value})["x"]


PLACES: dict[str, Callable[[Any], Any]] = {
    "result": _result,
    "argument": _argument,
    "sql": _in_sql,
    "parameter": _parameter,
    "metric": lambda value: values.metric("x", value),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", TABLE)
def test_a_value_arrives_as_what_it_is_or_is_refused(kind: str, place: str) -> None:
    row = TABLE[kind]
    expected = getattr(row, place)
    expected = row.result if expected is ... and place != "sql" else expected
    if expected is ...:
        return
    if isinstance(expected, str) and expected in REFUSALS:
        message = refused(expected, PLACES[place], row.value).message
        assert "…" not in message
        return
    found = PLACES[place](row.value)
    assert found == expected or found is expected or repr(found) == repr(expected) == "nan"
    assert type(found) is type(expected)
    if place != "sql" and found is not PICTURE:
        json.dumps(found, allow_nan=False)


def test_a_refusal_says_where_the_value_is_and_names_its_type() -> None:
    message = refused("TOOL_RESULT_INVALID", _result, {"fits": [1, {"model": object()}]}).message
    assert message.startswith("The tool returned what cannot be passed on: fits[1].model is object: JSON has no form")
    assert "x.a is matplotlib.core.Figure: a picture" in refused("INVALID_ARGUMENTS", _argument, {"a": FIGURE}).message
    assert "$m is a DataFrame: it is a table" in refused("SQL_FAILED", _in_sql, FRAME).message


def test_an_undeclared_result_names_how_much_of_it_was_cut() -> None:
    large = pandas.DataFrame({"n": range(5_000)})
    cases: list[tuple[Any, str]] = [
        (large, "the first 1,000 of 5,000 rows"),
        ({"x": numpy.arange(5_000)}, "x: the first 1,000 of 5,000 items"),
        (large["n"], "the first 1,000 of 5,000 items"),
        (count(), "the first 1,000 items, of more"),
    ]
    for value, words in cases:
        made = returned(None).answer(value, LIMIT, ROWS)
        items = made.value["x"] if isinstance(made.value, dict) else made.value
        assert len(items) == ROWS
        assert [block["text"].partition(". The setting max_tool_rows")[0] for block in made.more] == [f"Cut: {words}"]
    for whole in ([*range(5_000)], (n for n in range(ROWS)), numpy.arange(ROWS)):
        made = returned(None).answer(whole, LIMIT, ROWS)
        assert (len(made.value), made.more) == (5_000 if isinstance(whole, list) else ROWS, [])


def test_a_result_that_is_declared_is_whole_and_its_type_takes_what_libraries_have() -> None:
    table = pandas.DataFrame({"n": range(5_000)})
    made = returned(list[dict[str, int]]).answer(table, LIMIT, ROWS)
    assert made.structured is not None
    assert (len(made.structured["result"]), made.more) == (5_000, [])
    declared = returned(dict[str, Any]).answer(
        {"n": numpy.int64(3), "x": numpy.arange(2), "nan": math.nan}, LIMIT, ROWS
    )
    assert declared.structured == {"n": 3, "x": [0, 1], "nan": "NaN"}
    refused("TOOL_RESULT_INVALID", returned(list[int]).answer, numpy.array([1.5]), LIMIT, ROWS)


def test_pictures_stand_beside_the_values_returned_with_them() -> None:
    made = returned(None).answer({"score": 0.5, "plots": [FIGURE, AXES, PIL]}, LIMIT, ROWS)
    assert made.value == {"score": 0.5, "plots": ["[picture 1]", "[picture 1]", "[picture 2]"]}
    assert [block["type"] for block in made.content] == ["text", "image", "image"]
    chart = altair.Chart(FRAME).mark_point().encode(x="a")
    [block] = returned(None).answer(chart, LIMIT, ROWS).content
    assert base64.b64decode(block["data"]).startswith(b"\x89PNG")
    refused("TOOL_RESULT_TOO_LARGE", returned(None).answer, FIGURE, 10, ROWS)


def test_a_function_may_take_what_libraries_have() -> None:
    def f(
        df: pandas.DataFrame,
        series: pandas.Series | None = None,
        arrays: list[numpy.ndarray] = [],
        size: numpy.int64 = numpy.int64(1),
        day: numpy.datetime64 | None = None,
    ) -> None:
        """Take them."""

    tool = function_tool(f)
    given_values = {
        "df": FRAME.assign(a=[1.5, math.nan]),
        "series": pandas.Series([1], ["x"]),
        "arrays": [numpy.eye(2)],
    }
    sent = plain("call_tool", given_values | {"size": numpy.int64(3), "day": numpy.datetime64("2026-01-02")})
    assert problems(json.dumps(tool.input_schema), sent) == []
    taken = tool.bound(json.loads(json.dumps(sent)))
    assert taken["df"]["a"].tolist()[0] == 1.5
    assert taken["df"]["a"].dtype == "float64"
    assert taken["series"].to_dict() == {"x": 1}
    assert [array.tolist() for array in taken["arrays"]] == [[[1.0, 0.0], [0.0, 1.0]]]
    assert (taken["size"], taken["day"]) == (3, numpy.datetime64("2026-01-02"))
    assert tool.input_schema["properties"]["size"]["default"] == 1
    assert problems(json.dumps(tool.input_schema), {"df": 3, "size": 1.5}) != []


def test_a_type_that_json_has_not_is_named_without_the_advice_of_a_library() -> None:
    def g(row: Image) -> None:
        """Take it."""

    message = refused("BAD_TOOL", function_tool, g).message
    assert "JSON has no form of <class 'IPython.core.display.Image'>" in message
    assert "arbitrary" not in message
