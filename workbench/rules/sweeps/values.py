"""The values of a parameter as they are typed: `1,2,5`, `1..50`, `0..1:0.25`, `true,false`, `'a,b'`, `{"depth": 2}`.

Values are separated by commas outside of quotes and brackets. A range `LOW..HIGH:STEP` includes both ends and counts
in decimals, so `0..1:0.1` has eleven values, and the fourth is 0.3. What is neither a range, a number, `true`, `false`,
`null`, JSON nor quoted is text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NoReturn

from workbench.errors import BadInput

_NUMBER = r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_OPENING, _CLOSING, _QUOTES = "[{", "]}", "'\""
_LONGEST_NUMBER = 300


def assignment(text: str) -> tuple[str, str]:
    """The name and the values of `name=values`.

    Raises:
        BadInput: ``BAD_PARAMETER``.
    """
    name, equals, values = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise bad_parameter(f"{text!r} is not NAME=VALUES, such as seed=1..50")
    return name.strip(), values


def parse_values(name: str, text: str, largest: int) -> tuple[Any, ...]:
    """The values that a text stands for; at least one.

    Args:
        name: the parameter, for errors.
        largest: most values.

    Raises:
        BadInput: ``BAD_PARAMETER``, ``SWEEP_TOO_LARGE``.
    """
    found: list[Any] = []
    for item in _items(name, text):
        span = _RANGE.fullmatch(item)
        found += _range(name, item, span, largest) if span else [_value(name, item)]
        if len(found) > largest:
            raise too_large(len(found), largest)
    return tuple(found)


def parse_scalar(name: str, value: Any, largest: int) -> tuple[Any, ...]:
    """The values of a single value in YAML: those of a range, else itself.

    Raises:
        BadInput: ``BAD_PARAMETER``, ``SWEEP_TOO_LARGE``.
    """
    span = _RANGE.fullmatch(value) if isinstance(value, str) else None
    return tuple(_range(name, value, span, largest)) if span else (value,)


def canonical(value: Any) -> str:
    """JSON with sorted keys and without spaces; 1, 1.0 and true differ.

    Raises:
        BadInput: ``BAD_PARAMETER``: the value has no form in JSON.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise bad_parameter(f"A value is not JSON: {error}") from None


def too_large(count: int, largest: int) -> BadInput:
    """The error for a grid with more runs, or a parameter with more values, than allowed."""
    return BadInput(
        "SWEEP_TOO_LARGE",
        f"This is {count:,} runs or more, and at most {largest:,} are allowed. Give fewer values, or raise the setting "
        "max_sweep_runs.",
        runs=count,
        limit=largest,
    )


def bad_parameter(what: str) -> BadInput:
    """The error for values that cannot be understood."""
    return BadInput("BAD_PARAMETER", f"{what}.")


def _items(name: str, text: str) -> Iterator[str]:
    """The items between commas, but not those in quotes or brackets."""
    start, depth, quote, escaped = 0, 0, "", False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif quote:
            escaped = char == "\\" and (quote == '"' or depth > 0)
            quote = "" if char == quote else quote
        elif char in _QUOTES and (depth > 0 or not text[start:at].strip()):
            quote = char
        elif char in _OPENING and (depth > 0 or not text[start:at].strip()):
            depth += 1
        elif char in _CLOSING and depth > 0:
            depth -= 1
        elif char == "," and depth == 0:
            yield _item(name, text[start:at])
            start = at + 1
    if quote or depth:
        raise bad_parameter(f"{name}: {text!r} has a quote or a bracket that is not closed")
    yield _item(name, text[start:])


def _item(name: str, text: str) -> str:
    item = text.strip()
    if not item:
        raise bad_parameter(f'{name} lacks a value. Write "" for an empty text')
    return item


def _value(name: str, item: str) -> Any:
    if item in _WORDS:
        return _WORDS[item]
    if item[0] == "'" and item[-1] == "'" and len(item) > 1:
        return item[1:-1]
    if item[0] in '"[{' or re.fullmatch(_NUMBER, item, re.ASCII):
        return _json(name, item)
    return item


def _json(name: str, item: str) -> Any:
    if _INTEGER.fullmatch(item) and len(item) <= _LONGEST_NUMBER:
        return int(item) if str(int(item)) == item.removeprefix("+") else item  # 007 is no number
    if re.fullmatch(_NUMBER, item, re.ASCII):
        return _finite(name, item, float(item))
    try:
        return json.loads(item, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise bad_parameter(f"{name}: {item!r} is not JSON: {error}") from None


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _finite(name: str, item: str, number: float) -> float:
    if number in (float("inf"), float("-inf")):
        raise bad_parameter(f"{name}: {item} is too large a number")
    return number


def _range(name: str, item: str, span: re.Match[str], largest: int) -> list[int | float]:
    low, high = Decimal(span[1]), Decimal(span[2])
    whole = all(_INTEGER.fullmatch(part) for part in span.groups() if part is not None)
    if span[3] is None and not whole:
        raise bad_parameter(f"{name}: {item} needs a step, such as {span[1]}..{span[2]}:0.1")
    step = Decimal(span[3] or 1)
    if step == 0 or (high - low) * step < 0:
        raise bad_parameter(f"{name}: {item} has no values. A range counts from its first number to its second")
    steps = (high - low) / step
    if steps >= largest:
        raise too_large(int(min(steps, Decimal(10**18))) + 1, largest)
    numbers = (low + step * number for number in range(int(steps) + 1))
    return [int(number) if whole else _finite(name, item, float(number)) for number in numbers]
