"""The values that runs record: numbers and short texts.

JSON has no NaN and no infinity. As in the JSON of Protocol Buffers they are the texts ``NaN``, ``Infinity`` and
``-Infinity``, in requests, in results and in the store; who computes with them turns them into numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
