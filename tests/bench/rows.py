"""The rows of the table, and how contestants take turns."""

from __future__ import annotations

import pkgutil
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from tests.postgres import installed


@dataclass(frozen=True)
class Samples:
    """The figures for one bar: one a round for Workbench, and for its counterpart if there is one.

    Attributes:
        against: the counterpart, where the row has several.
    """

    ours: Sequence[float]
    other: Sequence[float] = ()
    unit: str = ""
    against: str = ""
    note: str = ""

    @property
    def ratio(self) -> float:
        """Median over the rounds of each round's own ratio: what slows a whole round down cancels out."""
        return statistics.median(a / b for a, b in zip(self.ours, self.other, strict=True))

    @property
    def over(self) -> float:
        """The best of Workbench over the best of the counterpart, in their unit."""
        return min(self.ours) - min(self.other)

    @property
    def best(self) -> float:
        """The best of Workbench; for absolute bars, where the machine's other work must not count."""
        return min(self.ours)


@dataclass(frozen=True)
class Bar:
    """The bar that a figure must reach."""

    figure: Callable[[Samples], float]
    limit: float
    at_least: bool
    unit: str

    def met(self, samples: Samples) -> bool:
        """Whether the figure is on the right side of the limit."""
        figure = self.figure(samples)
        return figure >= self.limit if self.at_least else figure <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g} {self.unit}"


def by_name(rounds: Sequence[Mapping[str, float]], unit: str) -> dict[str, Samples]:
    """The figures of Workbench alone, one of each name in each round."""
    return {name: Samples([figures[name] for figures in rounds], unit=unit) for name in rounds[0]}


def at_least(times: float) -> Bar:
    """So many times the counterpart's rate."""
    return Bar(lambda s: s.ratio, times, at_least=True, unit="×")


def at_most(times: float) -> Bar:
    """So many times the counterpart's time."""
    return Bar(lambda s: s.ratio, times, at_least=False, unit="×")


def over(limit: float, unit: str) -> Bar:
    """So much more than the counterpart."""
    return Bar(lambda s: s.over, limit, at_least=False, unit=f"{unit} over")


def within(limit: float, unit: str) -> Bar:
    """So much and no more."""
    return Bar(lambda s: s.best, limit, at_least=False, unit=unit)


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        bars: by the name of the line they are for; a row with one line names it "".
        run: `(rounds, quick)` to what was measured, by the same names; a line without a bar only informs.
        needs: packages of the `bench` extra, without which the row cannot run.
        needs_postgres: whether it needs the programs of a PostgreSQL server.
    """

    id: str
    work: str
    counterpart: str
    bars: Mapping[str, Bar]
    run: Callable[[int, bool], Mapping[str, Samples]]
    needs: tuple[str, ...] = ()
    needs_postgres: bool = False

    @property
    def bar(self) -> str:
        """All bars, as one text."""
        return "; ".join(f"{name}: {bar}" if name else str(bar) for name, bar in self.bars.items())

    @property
    def missing(self) -> list[str]:
        """Peers that are not installed."""
        packages = [package for package in self.needs if find_spec(package) is None]
        return packages + ["PostgreSQL"] * (self.needs_postgres and installed() is None)


def rows() -> list[Row]:
    """Every row, in the order of their numbers."""
    package = __name__.rpartition(".")[0]
    here = import_module(package).__path__
    names = sorted(m.name for m in pkgutil.iter_modules(here) if m.name[0] == "b" and m.name[1:].isdigit())
    return [import_module(f"{package}.{name}").ROW for name in names]


SHORT = 3
"""How many more rounds there are where one takes less than a second: noise comes in bursts of that length."""


def take_turns(rounds: int, **contestants: Callable[[], float]) -> dict[str, list[float]]:
    """Let every contestant run once a round, A B A B; a round before that warms up and does not count."""
    for run in contestants.values():
        run()
    turns = [{name: run() for name, run in contestants.items()} for _ in range(rounds)]
    return {name: [turn[name] for turn in turns] for name in contestants}
