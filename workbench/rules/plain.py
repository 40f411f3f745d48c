"""What JSON has of a value of Python and its libraries: of results and arguments of tools, of parameters, of rows.

Libraries are known by what their objects can do: none is imported. A value that has no form raises `NotPlain`, and what
is cut is said. Nothing of Workbench is imported: `worker/run_function.py` reads this file where Workbench is not.
"""

from __future__ import annotations

import math
from argparse import Namespace
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, MappingView, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from io import BytesIO, IOBase
from itertools import chain, islice
from pathlib import PurePath
from types import NoneType, SimpleNamespace
from typing import Any
from uuid import UUID

DEPTH_LIMIT = 64
"""Levels of objects and arrays."""
LARGEST_EXPONENT = 40
"""Whole decimals of more digits are text."""
_LIBRARY_LEVELS = 8
"""What a library makes of its values is a level more than the values."""
_OWN = frozenset({NoneType, bool, int, str, float, list, tuple, dict, set, frozenset})
_ITSELF = frozenset({NoneType, bool, int, str})


class NotPlain(ValueError):
    """A value has no form in JSON; the message says where it is, and names its type."""


@dataclass
class Plain:
    """Makes values what JSON has. What its users have differently they override.

    Attributes:
        rows: how many rows of a table, items of an array or of an iterator are taken; None: all.
        pictures: takes pictures: media type and bytes. None: they are refused.
        cut: what was left out, in words.
    """

    rows: int | None = None
    pictures: list[tuple[str, bytes]] | None = None
    cut: list[str] = field(default_factory=list)
    _place: list[str] = field(default_factory=list)
    _within: list[int] = field(default_factory=list)
    _drawn: dict[int, str] = field(default_factory=dict)

    def of(self, value: Any, name: str = "") -> Any:
        """A value as JSON.

        Args:
            name: of the value, for errors and for what is cut.

        Raises:
            NotPlain: it has none.
        """
        with self._inside(value, name):
            return self._of(value)

    def not_finite(self, value: float) -> Any:
        """NaN or an infinity."""
        return spelled(value)

    def moment(self, value: datetime) -> Any:
        """A date with a time."""
        return value.isoformat()

    def duration(self, value: timedelta) -> Any:
        """A duration: as in ISO 8601."""
        written = getattr(value, "isoformat", None)  # of pandas, with nanoseconds
        return written() if callable(written) else _duration(value)

    def binary(self, value: bytes) -> Any:
        """Bytes: base64 (RFC 4648)."""
        return b64encode(value).decode()

    def frame(self, value: Any) -> Any:
        """A table: an object a row."""
        return self._items(value, "rows")

    def other(self, value: Any) -> Any:
        """What has no form."""
        raise self.refused(value)

    def refused(self, value: Any, why: str = "JSON has no form of it") -> NotPlain:
        """The error for a value."""
        place = "".join(self._place)
        return NotPlain(f"{place.lstrip('.') or 'it'} is {_kind(value)}: {why}")

    def _of(self, value: Any) -> Any:
        match value:
            case Enum():
                return self._of(value.value)
            case None | bool():
                return value
            case str():
                return str(value)
            case int():
                return int(value)
            case float():
                return float(value) if math.isfinite(value) else self.not_finite(float(value))
            case Decimal():
                return exact(value) if value.is_finite() else self.not_finite(float(value))
            case datetime():
                return None if value != value else self.moment(value)
            case date() | time():
                return value.isoformat()
            case timedelta():
                return self.duration(value)
            case Fraction() | UUID() | PurePath() | complex():
                return str(value)
            case bytes() | bytearray() | memoryview():
                return self.binary(bytes(value))
            case Mapping():
                return self._object(value)
            case Namespace() | SimpleNamespace():
                return self._object(vars(value))
            case list() | tuple() | Set() | range() | deque() | MappingView():
                return self._list(_ordered(value))
        return self._of_library(value)

    def _of_library(self, value: Any) -> Any:
        if isinstance(value, type):
            return self.other(value)
        if is_dataclass(value):
            return self._object({each.name: getattr(value, each.name) for each in fields(value)})
        if callable(getattr(value, "model_dump", None)):  # of pydantic
            return self.of(value.model_dump())
        if names := [each.name for each in getattr(type(value), "__attrs_attrs__", ())]:
            return self._object({name: getattr(value, name) for name in names})
        if is_frame(value):
            return self.frame(value)
        if self._is_picture(value):
            return self._picture(value)
        if isinstance(value, Iterator) and not isinstance(value, IOBase):
            return self._iterated(value)
        if isinstance(value, Sequence):
            return self._list(value)
        if _is_missing(value):
            return None
        return self._items(value, "items")

    def _items(self, value: Any, noun: str) -> Any:
        """What a library has, as Python has it."""
        total = _length(value)
        try:
            made = native(value, self.rows, is_indexed=True)
        except Exception as error:  # somebody else's code
            raise self.refused(value, f"it cannot be converted: {type(error).__name__}: {error}") from None
        if made is value:
            return self.other(value)
        if self.rows is not None and total is not None and total > self.rows:
            self._note(f"the first {self.rows:,} of {total:,} {noun}")
        return self.of(made)

    def _iterated(self, items: Iterator[Any]) -> Any:
        taken = [*islice(items, self.rows)]
        if self.rows is not None and any(True for _ in islice(items, 1)):
            self._note(f"the first {self.rows:,} items, of more")
        return self._list(taken)

    def _list(self, items: Iterable[Any]) -> list[Any]:
        return [each if type(each) in _ITSELF else self.of(each, f"[{number}]") for number, each in enumerate(items)]

    def _object(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, each in value.items():
            name = self._key(key)
            if name in made:
                raise self.refused(value, f"two of its keys are {name!r} as text")
            made[name] = each if type(each) in _ITSELF else self.of(each, f".{name}")
        return made

    def _key(self, key: Any) -> str:
        if isinstance(key, tuple):
            return ", ".join(map(self._key, key))
        made = key if isinstance(key, str) else self.of(key, ".keys")
        return str(made)

    def _note(self, what: str) -> None:
        place = "".join(self._place).lstrip(".")
        self.cut.append(f"{place}: {what}" if place else what)

    def _is_picture(self, value: Any) -> bool:
        return any(hasattr(type(value), name) for name in ("savefig", "get_figure", "_repr_png_")) or (
            _library(value) == "altair" and hasattr(value, "save")
        )

    def _picture(self, value: Any) -> Any:
        """The number of a picture; one that stands alone is all there is."""
        if hasattr(type(value), "get_figure") and not hasattr(type(value), "savefig"):  # what a figure consists of
            value = value.get_figure()
        if self.pictures is None:
            raise self.refused(value, "a picture cannot be given here")
        if (known := self._drawn.get(id(value))) is not None:
            return known
        try:
            drawn = _drawn(value)
        except Exception as error:  # somebody else's code
            raise self.refused(value, f"it cannot be drawn: {type(error).__name__}: {error}") from None
        if drawn is None:
            return self._items(value, "items")
        self.pictures.append(drawn)
        self._drawn[id(value)] = f"[picture {len(self.pictures)}]"
        return self._drawn[id(value)] if self._place else None

    @contextmanager
    def _inside(self, value: Any, name: str) -> Iterator[None]:
        if id(value) in self._within:
            raise self.refused(value, "it contains itself")
        if len(self._within) > DEPTH_LIMIT + _LIBRARY_LEVELS:
            raise self.refused(value, f"it nests deeper than {DEPTH_LIMIT} levels")
        self._within.append(id(value))
        self._place.extend([name] if name else [])
        try:
            yield
        finally:
            self._within.pop()
            if name and self._place:
                self._place.pop()


def native(value: Any, rows: int | None = None, *, is_indexed: bool = False) -> Any:
    """A value of NumPy, pandas, Polars, Arrow, PyTorch and the like as Python has it: a number, text, date or list.

    Tables are lists of objects. What is of no such library is the value itself.

    Args:
        rows: how many of its rows or items; None: all.
        is_indexed: the items of a series are by its index, if that says more than their order.
    """
    if type(value) in _OWN or isinstance(value, type):
        return value
    if _is_missing(value):
        return None
    if isinstance(value, Enum):
        return native(value.value)
    if isinstance(value, datetime | timedelta):  # those of pandas may be finer than Python's
        finer: Any = getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)
        return getattr(value, "isoformat")() if finer else value  # noqa: B009
    if _library(value) == "pandas" and hasattr(value, "iloc"):
        return _of_pandas(value.iloc[:rows], is_indexed)
    if rows is not None and _length(value) is not None:
        value = value[:rows]
    if getattr(getattr(value, "dtype", None), "names", None):  # a structured array
        return (
            [native(each) for each in value]
            if value.shape
            else dict(zip(value.dtype.names, value.tolist(), strict=True))
        )
    for name in ("to_dicts", "to_pylist", "as_py", "tolist", "to_list", "item", "numpy"):
        if callable(convert := getattr(value, name, None)):
            made = convert()
            if name == "numpy":
                return native(made)
            return _held(value, made)
    if _library(value) == "pandas":  # such as a period
        return str(value)
    return value


def is_frame(value: object) -> bool:
    """Whether a value is a DataFrame or a table of Arrow."""
    return any(kind.__name__ in ("DataFrame", "Table") and hasattr(value, "columns") for kind in type(value).__mro__)


def spelled(value: float) -> str:
    """A number that JSON has not, as in the JSON of Protocol Buffers."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def exact(value: Decimal) -> int | float | str:
    """A finite decimal: a number if that has all its digits, otherwise a text."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= 0 and value.adjusted() < LARGEST_EXPONENT:
        return int(value)
    number = float(value)
    return number if math.isfinite(number) and Decimal(repr(number)) == value else str(value)


def _of_pandas(value: Any, is_indexed: bool) -> Any:
    """A table, or the values of a series. An index that only numbers rows is left out."""
    index = value.index
    is_named = index.nlevels > 1 or index.name is not None or index.dtype.kind not in "iu"
    if not hasattr(value, "columns"):
        if not (is_named and is_indexed):
            return _known(value)
        if index.nlevels == 1 and index.is_unique:
            return dict(zip(_known(index), _known(value), strict=True))
    if is_named:
        value = value.reset_index()
    if not value.columns.is_unique:
        raise ValueError(f"two of its columns are called {value.columns[value.columns.duplicated()][0]!r}")
    columns = [_known(value[name]) for name in value.columns]
    return [dict(zip(value.columns, row, strict=True)) for row in zip(*columns, strict=True)]


def _known(column: Any) -> list[Any]:
    """The values of a column: what is missing among others than floats is None."""
    values: list[Any] = column.tolist()
    if getattr(column.dtype, "kind", "") == "f":
        return values
    return [None if isinstance(each, float) and math.isnan(each) else each for each in values]


def _held(value: Any, made: Any) -> Any:
    """What a library made of a value; text where Python has no such date or number, which are numbers else."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind in ("M", "m") and _library(value) == "numpy" and any(type(each) is int for each in _flat(made)):
        finer = value.astype(f"{kind}8[us]")
        if bool(((finer == value) | (value != value)).all()) and not any(
            type(each) is int for each in _flat(finer.tolist())
        ):
            return finer.tolist()
        return [native(each) for each in value] if value.shape else str(value)
    if type(made) is type(value):  # a float that is longer than Python's
        return float(value) if float(value) == value or value != value else str(value)
    return made


def _flat(made: Any) -> Iterator[Any]:
    return chain.from_iterable(map(_flat, made)) if isinstance(made, list) else iter((made,))


def _drawn(value: Any) -> tuple[str, bytes] | None:
    """A figure, chart or picture as bytes, with their media type; None if it is none."""
    into = BytesIO()
    if hasattr(type(value), "savefig"):
        value.savefig(into, format="png")
        return "image/png", into.getvalue()
    if _library(value) == "altair":
        value.save(into, format="png")
        return "image/png", into.getvalue()
    for media, name in (("image/png", "_repr_png_"), ("image/jpeg", "_repr_jpeg_")):
        shown = getattr(value, name, lambda: None)()
        shown = shown[0] if isinstance(shown, tuple) else shown  # with what is known of it
        if shown is not None:
            return media, b64decode(shown) if isinstance(shown, str) else bytes(shown)
    return None


def _duration(value: timedelta) -> str:
    sign, size = ("-", -value) if value < timedelta() else ("", value)
    part = f".{size.microseconds:06}".rstrip("0") if size.microseconds else ""
    return f"{sign}P{size.days}DT{size.seconds}{part}S"


def _ordered(value: Any) -> Any:
    """The items of a set in their order, if they have one."""
    try:
        return sorted(value) if isinstance(value, Set) and not isinstance(value, MappingView) else value
    except TypeError:
        return value


def _length(value: Any) -> int | None:
    """How many rows or items an object of a library has; None if it is one value."""
    try:
        return len(value)
    except TypeError:
        return None


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in ("NAType", "NaTType")


def _library(value: Any) -> str:
    """The package that an object, or what it is derived from, comes from."""
    known = ("numpy", "pandas", "altair")
    roots = (kind.__module__.partition(".")[0] for kind in type(value).__mro__)
    return next((root for root in roots if root in known), "")


def _kind(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
