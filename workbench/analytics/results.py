"""The rows of an answer, as the library that a person works with has them."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

from workbench.errors import BadInput, Unavailable
from workbench.rules.plain import Plain, exact

if TYPE_CHECKING:
    import duckdb
    import pandas

Library = Literal["pandas", "polars", "arrow"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
_PACKAGES: dict[str, str] = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}

_LARGE = ("HUGEINT", "UHUGEINT")
_LONG = re.compile(r"DECIMAL\((1[6-9]|[23]\d),\d+\)")
"""Decimals that may have more digits than floats."""
_TIMES = re.compile(r"TIMESTAMP(_S|_MS|_NS| WITH TIME ZONE)?|DATE")
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def check(library: str) -> None:
    """Refuse a library that cannot be used, before anything is computed.

    Raises:
        BadInput: ``UNKNOWN_LIBRARY``. Unavailable: ``LIBRARY_MISSING``.
    """
    if library not in _PACKAGES:
        raise BadInput("UNKNOWN_LIBRARY", f"Results come as {', '.join(LIBRARIES)}, not as {library!r}.")
    needed = package(library)
    if find_spec(needed) is None:
        raise Unavailable("LIBRARY_MISSING", f"{needed} is not installed. Run `pip install {needed}`.")


def package(library: str) -> str:
    """The package of a library."""
    return _PACKAGES[library]


def converted(relation: duckdb.DuckDBPyRelation, library: str) -> Any:
    """The rows as a DataFrame of pandas or Polars, or a table of Arrow."""
    if library == "polars":
        import polars

        names = intervals(relation)
        frame = polars.DataFrame(in_microseconds(relation, names) if names else relation)
        return frame.with_columns(polars.col(name).cast(polars.Duration("us")) for name in names)
    return relation.to_arrow_table() if library == "arrow" else as_frame(relation)


def intervals(relation: duckdb.DuckDBPyRelation) -> list[str]:
    """The columns that are intervals."""
    return [name for name, kind in zip(relation.columns, relation.types, strict=True) if str(kind) == "INTERVAL"]


def in_microseconds(relation: duckdb.DuckDBPyRelation, names: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """The rows with intervals as numbers: Polars panics at an interval, which may have months."""
    quoted = map(_quote, names)
    numbers = ", ".join(f"epoch_us({name}) AS {name}" for name in quoted)
    return relation.project(f"* REPLACE ({numbers})")


def as_frame(relation: duckdb.DuckDBPyRelation) -> pandas.DataFrame:
    """The rows as a DataFrame of pandas. Times have a time zone, that of the computer; whole numbers stay whole.

    Columns with infinite times, or with decimals of more digits than floats have, are objects.

    Raises:
        BadInput: ``SQL_FAILED``: pandas has no such type.
    """
    import duckdb

    large = [at for at, kind in enumerate(relation.types) if str(kind) in _LARGE]
    infinite = _infinite(relation)  # pandas could neither take nor show them
    apart = ", ".join(f"NULL AS {_quote(relation.columns[at])}" for at in [*large, *infinite])
    with warnings.catch_warnings():
        # DuckDB calls `DataFrame.drop` as pandas 4 no longer allows.
        warnings.filterwarnings("ignore", "The inplace keyword in DataFrame.drop", DeprecationWarning)
        try:
            frame: pandas.DataFrame = (relation.project(f"* REPLACE ({apart})") if apart else relation).df()
        except duckdb.Error as error:  # such as a time with a zone
            raise BadInput(
                "SQL_FAILED", f"pandas cannot have these rows: {error}. Cast that to another type."
            ) from None
    rows = fetched(relation.project(", ".join(_quote(relation.columns[at]) for at in infinite))) if infinite else []
    for at, values in zip(infinite, zip(*rows, strict=True), strict=True):
        frame.isetitem(at, _objects(values))
    for at in (at for at, kind in enumerate(relation.types) if _LONG.fullmatch(str(kind))):
        decimals = [value for (value,) in relation.project(_quote(relation.columns[at])).fetchall()]
        if any(value is not None and isinstance(exact(value), str) for value in decimals):
            frame.isetitem(at, _objects(decimals))
    for at in large:
        frame.isetitem(at, _whole([value for (value,) in relation.project(_quote(relation.columns[at])).fetchall()]))
    return frame


def _infinite(relation: duckdb.DuckDBPyRelation) -> list[int]:
    """The columns with infinite times."""
    times = [at for at, kind in enumerate(relation.types) if _TIMES.fullmatch(str(kind))]
    if not times:
        return []
    questions = ", ".join(f"coalesce(bool_or(isinf({_quote(relation.columns[at])})), false)" for at in times)
    [row] = relation.aggregate(questions).fetchall()
    return [at for at, is_infinite in zip(times, row, strict=True) if is_infinite]


def _objects(values: Sequence[Any]) -> Any:
    """Values that pandas has no type for."""
    import pandas

    return pandas.Series(values, dtype=object)


def _whole(values: list[int | None]) -> Any:
    """Whole numbers of any size as pandas has them exactly: DuckDB gives sums, which may be large, as floats."""
    import pandas

    numbers = [value for value in values if value is not None]
    if numbers and not _SMALLEST <= min(numbers) <= max(numbers) <= _LARGEST:
        return pandas.Series(values, dtype=object)
    return pandas.Series(values, dtype="int64" if len(numbers) == len(values) else "Int64")


def _quote(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def fetched(relation: duckdb.DuckDBPyRelation) -> list[tuple[Any, ...]]:
    """The rows, with texts for times that Python has not: infinite ones, and those with nanoseconds."""
    rows = relation.fetchall()
    columns = enumerate(zip(map(_quote, relation.columns), map(str, relation.types), strict=True))
    expressions = {at: text for at, (name, kind) in columns if (text := _finer(name, kind))}
    if not expressions:
        return rows
    texts = relation.project(", ".join(f"{text} AS c{at}" for at, text in expressions.items())).fetchall()
    return [
        (*row,) if not any(each) else _with(row, dict(zip(expressions, each, strict=True)))
        for row, each in zip(rows, texts, strict=True)
    ]


def _finer(name: str, kind: str) -> str:
    """An expression for what Python has not of a column, else NULL; empty if all values of its type have a form."""
    if not _TIMES.search(kind):
        return ""
    if not _TIMES.fullmatch(kind):  # within lists and structures
        text = f"to_json({name})::VARCHAR"
        return f"CASE WHEN contains({text}, 'infinity\"') THEN {text} END"
    infinite = f"WHEN isinf({name}) THEN CASE WHEN {name} > 'epoch' THEN 'Infinity' ELSE '-Infinity' END"
    finer = f"ELSE replace({name}::VARCHAR, ' ', 'T')" if kind == "TIMESTAMP_NS" else ""
    return f"CASE {infinite} {finer} END"


def _with(row: tuple[Any, ...], texts: Mapping[int, str | None]) -> tuple[Any, ...]:
    def value(at: int, before: Any) -> Any:
        text = texts.get(at)
        if text is None or not isinstance(before, list | tuple | dict):
            return before if text is None else text
        spelled = text.replace('"infinity"', '"Infinity"').replace('"-infinity"', '"-Infinity"')
        return json.loads(spelled, parse_float=Decimal)

    return tuple(value(at, before) for at, before in enumerate(row))


class _Cell(Plain):
    """A value of an answer: NaN is null, times with a zone are in UTC, and durations seconds."""

    def not_finite(self, value: float) -> Any:
        """NaN or an infinity."""
        return None if math.isnan(value) else super().not_finite(value)

    def moment(self, value: datetime) -> Any:
        """A date with a time."""
        if value.tzinfo is None:
            return value.isoformat()
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    def duration(self, value: timedelta) -> Any:
        """A duration in seconds."""
        return value.total_seconds()

    def other(self, value: Any) -> Any:
        """What has no form."""
        return str(value)


def as_data(relation: duckdb.DuckDBPyRelation, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of an answer as JSON has them: numbers stay numbers, times are in UTC, and JSON is part of it.

    NaN is null, infinity the text `Infinity` or `-Infinity`; intervals are seconds. A decimal with more digits than a
    float is a text with all of them; bytes are base64.
    """
    is_json = [str(kind) == "JSON" for kind in relation.types]
    cell = _Cell()
    return [
        {
            name: _decode(value) if nested else cell.of(value)
            for name, nested, value in zip(relation.columns, is_json, row, strict=True)
        }
        for row in rows
    ]


def _decode(text: str | None) -> Any:
    with suppress(ValueError, RecursionError):
        return None if text is None else json.loads(text)
    return text
