"""Statistics of groups."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Summary(NamedTuple):
    n: int
    mean: float
    sd: float


class Line(NamedTuple):
    """A least-squares line and the correlation behind it."""

    slope: float
    intercept: float
    r: float

    def at(self, x: float) -> float:
        return self.intercept + self.slope * x


def group(items: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """The items by key, keys in alphabetical order."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return dict(sorted(groups.items()))


def summarise(values: Sequence[float]) -> Summary:
    return Summary(len(values), statistics.fmean(values), statistics.stdev(values))


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    slope, intercept = statistics.linear_regression(x, y)
    return Line(slope, intercept, statistics.correlation(x, y))
