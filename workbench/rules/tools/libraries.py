"""Parameters of functions whose types are of NumPy, pandas, Polars or Arrow: what JSON has of them, and back.

None of these libraries is imported: who names a type of one has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import PlainValidator, WithJsonSchema

from workbench.rules.runs.values import NOT_FINITE

_TABLE = {"type": "array", "items": {"type": "object"}}
_LIST = {"type": "array"}
_TEXT = {"type": "string"}
_SCHEMAS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("pandas", "DataFrame"): _TABLE,
    ("polars", "DataFrame"): _TABLE,
    ("pyarrow", "Table"): _TABLE,
    ("pandas", "Series"): {"type": ["array", "object"]},
    ("polars", "Series"): _LIST,
    ("pandas", "Index"): _LIST,
    ("numpy", "ndarray"): _LIST,
    ("pandas", "Timestamp"): _TEXT,
    ("pandas", "Timedelta"): _TEXT,
    ("numpy", "datetime64"): _TEXT,
    ("numpy", "bool"): {"type": "boolean"},
    ("numpy", "bool_"): {"type": "boolean"},
    ("numpy", "integer"): {"type": "integer"},
    ("numpy", "floating"): {"type": "number"},
    ("numpy", "str_"): _TEXT,
}


def taken(annotation: Any) -> Any:
    """An annotation with what JSON has in place of types of libraries, at any depth; objects of these arrive."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    kind = origin if isinstance(origin, type) else annotation
    if isinstance(kind, type) and (schema := _schema(kind)) is not None:
        return Annotated[Any, PlainValidator(_maker(kind)), WithJsonSchema(dict(schema))]
    if not arguments or origin is None:
        return annotation
    within = tuple([*map(taken, one)] if isinstance(one, list) else taken(one) for one in arguments)
    if within == arguments:
        return annotation
    if origin in (Union, UnionType):
        return reduce(or_, within)
    return Annotated[within] if origin is Annotated else origin[within]


def is_foreign(kind: type) -> bool:
    """Whether a type is one of those libraries."""
    return _schema(kind) is not None


def _schema(kind: type) -> Mapping[str, Any] | None:
    bases = ((base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__)
    return next((_SCHEMAS[base] for base in bases if base in _SCHEMAS), None)


def _maker(kind: type) -> Callable[[Any], Any]:
    """What makes an object of a type of its JSON."""
    library = sys.modules[kind.__module__.partition(".")[0]]
    made: Any = kind
    match kind.__name__:
        case "ndarray":
            made = library.asarray
        case "Table":
            made = library.Table.from_pylist

    def make(value: Any) -> Any:
        return value if isinstance(value, kind) else made(_with_numbers(value))

    return make


def _with_numbers(value: Any) -> Any:
    """Texts such as `NaN` as the numbers that they stand for, where all others are numbers."""
    match value:
        case [dict(), *_] if all(isinstance(row, dict) for row in value):
            names = dict.fromkeys(name for row in value for name in row)
            columns = {name: _numbers([row.get(name) for row in value]) for name in names}
            return [{name: columns[name][at] for name in row} for at, row in enumerate(value)]
        case dict():
            return dict(zip(value, _numbers([*value.values()]), strict=True))
        case [list(), *_]:
            return [_with_numbers(each) for each in value]
        case list():
            return _numbers(value)
        case str() if value in NOT_FINITE:
            return NOT_FINITE[value]
    return value


def _numbers(values: list[Any]) -> list[Any]:
    if {*NOT_FINITE}.issuperset(value for value in values if isinstance(value, str)):
        return [NOT_FINITE[value] if isinstance(value, str) else value for value in values]
    return values
