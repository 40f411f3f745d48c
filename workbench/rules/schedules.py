"""When a plan is carried out that is scheduled: at a time of day, at intervals, or both.

Times of day are those of a time zone, by default this machine's. A time that the clock skips, when summer time begins,
is as much later as it skips; one that it shows twice is the first of both.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, tzinfo

from workbench.errors import BadInput

MOMENT = "%Y-%m-%dT%H:%M"
"""How a local time of a day is written."""
SATURDAY = 5
DAYS = ("day", "weekday")
MOST_HOURS = 24 * 31
_HOURS = re.compile(r"([1-9]\d{0,2})h")


def time_of_day(text: str) -> time:
    """A time of day, such as ``22:00``.

    Raises:
        BadInput: ``BAD_SCHEDULE``.
    """
    try:
        return datetime.strptime(text, "%H:%M").time()
    except ValueError:
        raise BadInput("BAD_SCHEDULE", f"{text!r} is no time of day. Write one such as 22:00.") from None


def hours(every: str) -> int | None:
    """The hours of an interval, such as ``6h``; None: it is one of days.

    Raises:
        BadInput: ``BAD_SCHEDULE``.
    """
    if every in DAYS:
        return None
    match = _HOURS.fullmatch(every)
    if match is None or int(match[1]) > MOST_HOURS:
        raise BadInput("BAD_SCHEDULE", f"{every!r} is no interval. Write day, weekday, or hours such as 6h.")
    return int(match[1])


def check_times(*times: str | None, every: str | None) -> None:
    """Refuse what is no time of day, or no interval; None: nothing is said.

    Raises:
        BadInput: ``BAD_SCHEDULE``.
    """
    for text in times:
        if text is not None:
            time_of_day(text)
    if every is not None:
        hours(every)


def coming(at: str, after: float, zone: tzinfo | None = None, *, weekdays: bool = False) -> float:
    """When a time of day comes next, perhaps on a weekday only.

    Args:
        after: seconds since the epoch, as what is returned.
        zone: None: this machine's.

    Raises:
        BadInput: ``BAD_SCHEDULE``.
    """
    moment, today = time_of_day(at), datetime.fromtimestamp(after, zone).date()
    days = (today + timedelta(days=number) for number in range(5))
    times = (
        datetime.combine(day, moment, zone).timestamp() for day in days if not weekdays or day.weekday() < SATURDAY
    )
    return next(time for time in times if time > after)


def next_start(at: str | None, every: str | None, due: float, now: float, zone: tzinfo | None = None) -> float | None:
    """The start after one that was due, which is not before now; None: there is none.

    Args:
        at: a time of day, for ``day`` and ``weekday``.
        every: ``day``, ``weekday``, hours such as ``6h``, or None: once.
        due, now: seconds since the epoch.
        zone: None: this machine's.
    """
    if every is None:
        return None
    if (interval := hours(every)) is not None:
        seconds = interval * 3_600
        return due + seconds * (1 + max(0, int((now - due) // seconds)))
    assert at is not None
    return coming(at, max(due, now), zone, weekdays=every == "weekday")
