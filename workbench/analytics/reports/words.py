"""Numbers as sentences say them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

MOST_NAMED = 3
UNITS = ((120, "s", 1), (7_200, "min", 60), (172_800, "h", 3_600), (math.inf, "days", 86_400))
"""Below how many seconds which unit is easy to read, and its seconds."""
NAMES = {"s": "seconds", "min": "minutes", "h": "hours", "days": "days"}


def duration(seconds: float | None) -> str:
    """A duration in the unit in which it is easy to read: 7 s, 3.5 min, 2 h."""
    if seconds is None or math.isnan(seconds):
        return "an unknown time"
    if 0 < seconds < 1:
        return f"{round(1_000 * seconds):,} ms"
    unit, size = _unit(seconds)
    return f"{seconds / size:,.1f}".removesuffix(".0") + f" {unit}"


def unit_for(longest: float) -> tuple[str, int]:
    """The unit in which an axis up to a duration is easy to read, and its seconds."""
    unit, size = _unit(longest)
    return NAMES[unit], size


def _unit(seconds: float) -> tuple[str, int]:
    return next((unit, size) for limit, unit, size in UNITS if not seconds >= limit)


def counted(number: float, noun: str, plural: str = "") -> str:
    """A number with its noun: 1 task, 2 tasks."""
    return f"{int(number):,} {noun if number == 1 else plural or noun + 's'}"


def was(number: float) -> str:
    """The verb after a number."""
    return "was" if number == 1 else "were"


def percent(share: float) -> str:
    """A share, as percent."""
    return f"{100 * share:.0f} %"


def enumerated(names: Sequence[str]) -> str:
    """The first of some names: a, b, c and 4 more."""
    more = len(names) - MOST_NAMED
    if more > 0:
        return f"{', '.join(names[:MOST_NAMED])} and {more:,} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "none"


OVER = ("failed", "cancelled", "open")


def others(counts: Any, prefix: str = "") -> str:
    """The tasks that are not completed: `1 failed, 2 open`; empty if there are none.

    Args:
        counts: a mapping or a row with the numbers, by `failed`, `cancelled` and `open` with a prefix.
    """
    return ", ".join(f"{counts[prefix + word]:,} {word}" for word in OVER if counts[prefix + word])


def without(counts: Any, prefix: str = "of_") -> str:
    """The end of a sentence about completed tasks: what it leaves out."""
    left = others(counts, prefix)
    return f"; not counted: {left}" if left else ""
