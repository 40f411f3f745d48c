"""What a window of time looks like: its intervals, and what was open in each. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

INTERVALS = 60
"""How many intervals a window has, whatever its length."""


@dataclass(frozen=True)
class Window:
    """Intervals of equal length, in microseconds; the last one contains the present.

    Their limits are multiples of their length, so that they stay where they are as time goes on.
    """

    since: int
    width: int
    now: int

    @property
    def starts(self) -> list[int]:
        """When each interval begins."""
        return [self.since + place * self.width for place in range(INTERVALS)]

    @classmethod
    def ending(cls, now: int, length: int) -> Window:
        """The window of a length that contains the present."""
        width = max(1, length // INTERVALS)
        return cls((now // width + 1 - INTERVALS) * width, width, now)


def placed(counts: Mapping[int, int]) -> list[int]:
    """Numbers by interval; 0 where nothing happened. What is after the last interval belongs to it."""
    found = [0] * INTERVALS
    for place, number in counts.items():
        found[max(0, min(INTERVALS - 1, place))] += number
    return found


def open_at_ends(now: int, opened: Sequence[int], closed: Sequence[int]) -> list[int]:
    """How many were open at the end of each interval, from how many are open now; never less than none."""
    found, count = [], now
    for one, other in zip(reversed(opened), reversed(closed), strict=True):
        found.append(max(0, count))
        count += other - one
    return found[::-1]


def share(busy: int, window: Window, since: int) -> float:
    """The share of its time in a window that something was busy, if it is there since a time; at most 1."""
    there = window.now - max(window.since, since)
    return min(1.0, busy / there) if there > 0 else 0.0


def quantile(ordered: Sequence[int], part: float) -> int | None:
    """The value in sorted ones below which a part of them is; None without values."""
    return ordered[int(part * (len(ordered) - 1))] if ordered else None
