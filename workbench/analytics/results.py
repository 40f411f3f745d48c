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

if TYPE_CHECKING:
    import duckdb
    import pandas

Library = Literal["pandas", "polars", "arrow"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
_PACKAGES: dict[str, str] = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}


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
    quoted = ('"{}"'.format(name.replace('"', '""')) for name in names)
    numbers = ", ".join(f"epoch_us({name}) AS {name}" for name in quoted)
    return found.project(f"* REPLACE ({numbers})")


def as_frame(found: duckdb.DuckDBPyRelation) -> pandas.DataFrame:
    """The rows as a DataFrame of pandas. Times have a time zone, that of the computer."""
    with warnings.catch_warnings():
        # DuckDB calls `DataFrame.drop` as pandas 4 no longer allows.
        warnings.filterwarnings("ignore", "The inplace keyword in DataFrame.drop", DeprecationWarning)
        frame: pandas.DataFrame = found.df()
    return frame


def as_data(found: duckdb.DuckDBPyRelation, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of an answer as JSON has them: numbers stay numbers, times are in UTC, and JSON is part of it.

    What JSON has no number for (NaN, infinity) is null; intervals are seconds.
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
            return float(value) if math.isfinite(value) else None
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
