"""The rows of an answer, as the library that a person works with has them."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, get_args

from workbench.errors import BadInput, Unavailable
from workbench.rules.runs.values import spelled

if TYPE_CHECKING:
    import duckdb
    import pandas

Library = Literal["pandas", "polars", "arrow"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
_PACKAGES: dict[str, str] = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}

_LARGE = ("HUGEINT", "UHUGEINT")
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


def converted(found: duckdb.DuckDBPyRelation, library: str) -> Any:
    """The rows as a DataFrame of pandas or Polars, or a table of Arrow."""
    if library == "polars":
        import polars

        names = intervals(found)
        frame = polars.DataFrame(in_microseconds(found, names) if names else found)
        return frame.with_columns(polars.col(name).cast(polars.Duration("us")) for name in names)
    return found.to_arrow_table() if library == "arrow" else as_frame(found)


def intervals(found: duckdb.DuckDBPyRelation) -> list[str]:
    """The columns that are intervals."""
    return [name for name, kind in zip(found.columns, found.types, strict=True) if str(kind) == "INTERVAL"]


def in_microseconds(found: duckdb.DuckDBPyRelation, names: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """The rows with intervals as numbers: Polars panics at an interval, which may have months."""
    quoted = map(_quoted, names)
    numbers = ", ".join(f"epoch_us({name}) AS {name}" for name in quoted)
    return found.project(f"* REPLACE ({numbers})")


def as_frame(found: duckdb.DuckDBPyRelation) -> pandas.DataFrame:
    """The rows as a DataFrame of pandas. Times have a time zone, that of the computer; whole numbers stay whole."""
    large = {at: _quoted(found.columns[at]) for at, kind in enumerate(found.types) if str(kind) in _LARGE}
    if len({*found.columns}) < len(found.columns):
        large = {}
    with warnings.catch_warnings():
        # DuckDB calls `DataFrame.drop` as pandas 4 no longer allows.
        warnings.filterwarnings("ignore", "The inplace keyword in DataFrame.drop", DeprecationWarning)
        others = ", ".join(f"NULL AS {name}" for name in large.values())
        frame: pandas.DataFrame = (found.project(f"* REPLACE ({others})") if large else found).df()
    for at, name in large.items():
        frame.isetitem(at, _whole([value for (value,) in found.project(name).fetchall()]))
    return frame


def _whole(values: list[int | None]) -> Any:
    """Whole numbers of any size as pandas has them exactly: DuckDB gives sums, which may be large, as floats."""
    import pandas

    known = [value for value in values if value is not None]
    if known and not _SMALLEST <= min(known) <= max(known) <= _LARGEST:
        return pandas.Series(values, dtype=object)
    return pandas.Series(values, dtype="int64" if len(known) == len(values) else "Int64")


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def as_data(found: duckdb.DuckDBPyRelation, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of an answer as JSON has them: numbers stay numbers, times are in UTC, and JSON is part of it.

    NaN is null, infinity the text `Infinity` or `-Infinity`; intervals are seconds.
    """
    is_json = [str(kind) == "JSON" for kind in found.types]
    return [
        {
            name: _decoded(value) if nested else _plain(value)
            for name, nested, value in zip(found.columns, is_json, row, strict=True)
        }
        for row in rows
    ]


def _decoded(text: str | None) -> Any:
    with suppress(ValueError, RecursionError):
        return None if text is None else json.loads(text)
    return text


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float() | Decimal():
            return None if math.isnan(value) else spelled(float(value))
        case timedelta():
            return value.total_seconds()
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case Mapping():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return str(value)
