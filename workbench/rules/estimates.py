"""What attempts at tasks may take and cost, by what similar ones took and cost earlier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that has ended: at which task, by whom, its seconds, and its cost in US dollars, if that is known."""

    title: str
    persona: str
    profile: str | None
    seconds: float
    usd: float | None


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the median and the most of some values."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """That of some values; None: there are none."""
        return cls(min(values), median(values), max(values)) if values else None

    @classmethod
    def total(cls, spreads: Iterable[Spread | None]) -> Spread | None:
        """Of several things together, as far as they are known; None: nothing is."""
        known = [spread for spread in spreads if spread is not None]
        if not known:
            return None
        return cls(sum(one.low for one in known), sum(one.median for one in known), sum(one.high for one in known))


def similar(
    title: str, persona: str, profile: str | None, attempts: Sequence[Attempt]
) -> tuple[str | None, Sequence[Attempt]]:
    """The attempts that are most like those to come at a task, and what they have in common with it.

    That is its title and persona, ``task``, else its persona, ``persona``; of either, with the same profile if there
    are any. None: there are no such attempts.
    """
    own = [attempt for attempt in attempts if attempt.persona == persona]
    for basis, alike in (("task", [attempt for attempt in own if attempt.title == title]), ("persona", own)):
        if alike:
            return basis, [attempt for attempt in alike if attempt.profile == profile] or alike
    return None, ()


def in_words(known: int, of: int, attempts: int, seconds: Spread | None, usd: Spread | None) -> str:
    """An estimate in a sentence or two.

    Args:
        known: of how many tasks something is known.
        of: how many there are to do.
        attempts: how many attempts that rests on.
        seconds: together, one task after another.
        usd: together.
    """
    if not of:
        return "Nothing is left to do."
    if seconds is None:
        return "Nothing is known of what such tasks take and cost."
    tasks = f"{known} of {of} tasks are" if known < of else f"{of} tasks are" if of > 1 else "The task is"
    based = f"{attempts} {'attempt' if attempts == 1 else 'attempts'}"
    cost = "of the cost nothing is known" if usd is None else f"{_dollars(usd)} cost"
    return f"{tasks} like earlier ones ({based}): {_times(seconds)} of work are expected; {cost}."


def _times(spread: Spread) -> str:
    low, middle, high = map(_time, (spread.low, spread.median, spread.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def _dollars(spread: Spread) -> str:
    low, middle, high = (f"${value:.2f}" for value in (spread.low, spread.median, spread.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
