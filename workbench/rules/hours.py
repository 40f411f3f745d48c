"""A plan hour by hour: when it was worked on, and why at other times nothing was. Pure; times are microseconds UTC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from workbench.model import SECOND

HOUR = 3_600 * SECOND
SHORT = 60 * SECOND
"""Pauses up to this length in an hour need no explanation."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Something that lasted, such as an attempt, or a reason for which nothing was done."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to somebody, or to a task, at a time."""

    at: int
    what: str
    whom: str


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour, or several that are alike because nothing happened in them.

    Args:
        worked: how long at least one attempt was under way.
        tasks: what was worked on.
        waited: why nothing was under way at other times, and how long each reason held.
        happened: what happened, and to whom, in order.
        unexplained: how long nothing was under way for no known reason.
    """

    start: int
    end: int
    worked: int
    tasks: Sequence[str]
    waited: Sequence[tuple[str, int]]
    happened: Sequence[tuple[str, Sequence[str]]]
    unexplained: int


def by_hour(
    since: int, until: int, work: Sequence[Stretch], reasons: Sequence[Stretch], moments: Sequence[Moment]
) -> list[Hour]:
    """The hours from a time until another, which begin at full hours but for the first.

    Args:
        reasons: the more telling ones first; time that one explains is not explained again by a later one.
    """
    hours: list[Hour] = []
    start = since
    while start < until:
        end = min((start // HOUR + 1) * HOUR, until)
        hour = _hour(start, end, work, reasons, moments, is_last=end == until)
        if hours and _are_alike(hours[-1], hour):
            hours[-1] = _together(hours[-1], hour)
        else:
            hours.append(hour)
        start = end
    return hours


def _hour(
    start: int,
    end: int,
    work: Iterable[Stretch],
    reasons: Iterable[Stretch],
    moments: Iterable[Moment],
    *,
    is_last: bool,
) -> Hour:
    under_way = [one for one in work if one.start < end and one.end > start]
    idle = [(start, end)]
    for one in under_way:
        idle = _without(idle, one)
    worked = end - start - _length(idle)
    waited: dict[str, int] = {}
    for reason in reasons:
        left = _without(idle, reason)
        if explained := _length(idle) - _length(left):
            waited[reason.text] = waited.get(reason.text, 0) + explained
        idle = left
    return Hour(
        start=start,
        end=end,
        worked=worked,
        tasks=tuple(dict.fromkeys(one.text for one in under_way)),
        waited=tuple(waited.items()),
        happened=_grouped(one for one in moments if start <= one.at < end or (is_last and one.at == end)),
        unexplained=unexplained if (unexplained := _length(idle)) > SHORT else 0,
    )


def gaps(since: int, until: int, stretches: Iterable[Stretch], text: str) -> list[Stretch]:
    """The time between two times that no stretch covers, as stretches with a text."""
    pieces = [(since, until)]
    for one in stretches:
        pieces = _without(pieces, one)
    return [Stretch(start, end, text) for start, end in pieces]


def _grouped(moments: Iterable[Moment]) -> tuple[tuple[str, Sequence[str]], ...]:
    """What happened in the order in which it happened first, each with all to whom it happened."""
    grouped: dict[str, list[str]] = {}
    for one in moments:
        grouped.setdefault(one.what, []).append(one.whom)
    return tuple((what, tuple(whom)) for what, whom in grouped.items())


def _without(pieces: Iterable[tuple[int, int]], gone: Stretch) -> list[tuple[int, int]]:
    """Stretches of time without another."""
    cut = [piece for start, end in pieces for piece in ((start, min(end, gone.start)), (max(start, gone.end), end))]
    return [(start, end) for start, end in cut if start < end]


def _length(pieces: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in pieces)


def _are_alike(before: Hour, hour: Hour) -> bool:
    """Whether in two hours nothing happened, and the same was done or waited for."""
    return not (before.happened or hour.happened) and _kind(before) == _kind(hour)


def _kind(hour: Hour) -> tuple[object, ...]:
    return bool(hour.worked), hour.tasks, tuple(text for text, _ in hour.waited), bool(hour.unexplained)


def _together(before: Hour, hour: Hour) -> Hour:
    waited = tuple((text, one + more) for (text, one), (_, more) in zip(before.waited, hour.waited, strict=True))
    return replace(
        before,
        end=hour.end,
        worked=before.worked + hour.worked,
        waited=waited,
        unexplained=before.unexplained + hour.unexplained,
    )
