"""The values that runs record, numbers and short texts, and conditions on them, such as ``loss<0.1``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import BadInput
from workbench.rules import plain

Value = float | str
LONGEST_TEXT = 1_000
"""The most characters of a text that is a value."""
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True, slots=True)
class Point:
    """A value of a series. One of `value` and `text` is None."""

    name: str
    step: int | None
    value: float | None
    text: str | None


def spelled(value: float | str) -> float | str:
    """A value as JSON can hold it: numbers that are not finite as text."""
    return value if isinstance(value, str) or math.isfinite(value) else plain.spelled(value)


def as_number(value: float | str | None) -> float | None:
    """The number that a value stands for; None if it is text."""
    return NOT_FINITE.get(value) if isinstance(value, str) else value


def points(metrics: Mapping[str, Value | Sequence[Value]], step: int | None) -> list[Point]:
    """The points that one call records: a sequence is the values of consecutive steps.

    Args:
        step: of the first value of each name; None: the next one of its series.
    """
    found = []
    for name, given in metrics.items():
        values: Sequence[Value] = [given] if isinstance(given, float | int | str) else given
        for number, value in enumerate(values):
            text = value if isinstance(value, str) else None
            at = None if step is None else step + number
            found.append(Point(name, at, None if isinstance(value, str) else float(value), text))
    return found


NAME = r"^[^<>=!\x00-\x1f\x7f]+$"
"""Names of metrics. The characters of conditions, and control characters, are left out."""
_CONDITION = re.compile(r"\s*([^<>=!]+?)\s*(<=|>=|!=|==|=|<|>)\s*([^\s<>=!].*?)?\s*", re.DOTALL)
_FOR_TEXTS = ("=", "!=")


def parse_condition(text: str) -> dict[str, Any]:
    """A condition as queries take it: `name`, `relation` and either `number` or `text`, of which the other is null.

    Raises:
        BadInput: ``BAD_CONDITION``.
    """
    found = _CONDITION.fullmatch(text)
    if found is None or not found[3]:
        raise _bad(text, "write a metric's name, one of < <= > >= = !=, and a value, such as loss<0.1")
    relation, value = found[2].replace("==", "="), _value(found[3])
    if isinstance(value, str) and relation not in _FOR_TEXTS:
        raise _bad(text, f"{value!r} is not a finite number, so only = and != compare it")
    text_value = None if isinstance(value, float) else value
    return {"name": found[1], "relation": relation, "number": None if text_value else value, "text": text_value}


def _value(text: str) -> float | str:
    """A value as it is stored."""
    try:
        return spelled(float(text))
    except ValueError:
        return text


def _bad(text: str, why: str) -> BadInput:
    return BadInput("BAD_CONDITION", f"{text!r} is no condition: {why}.")
