"""When a scheduled plan is carried out next: times of day, intervals, weekends, and clocks that are changed."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from workbench.errors import BadInput
from workbench.rules.schedules import coming, hours, next_start, time_of_day

BERLIN = ZoneInfo("Europe/Berlin")


def seconds(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


def local(at: float | None) -> str:
    assert at is not None
    return f"{datetime.fromtimestamp(at, BERLIN):%m-%d %H:%M %Z}"


@pytest.mark.parametrize(
    ("at", "every", "due", "now", "following"),
    [
        ("22:00", "day", "2026-11-28T22:00", "2026-11-28T22:00:01", "11-29 22:00 CET"),
        ("22:00", "day", "2026-11-25T22:00", "2026-11-28T09:00", "11-28 22:00 CET"),  # three were missed
        ("22:00", "weekday", "2026-11-27T22:00", "2026-11-27T22:00:01", "11-30 22:00 CET"),  # it was a Friday
        ("02:30", "day", "2026-03-28T02:30", "2026-03-28T02:30:01", "03-29 03:30 CEST"),  # the clock skips it
        ("02:30", "day", "2026-03-29T03:30", "2026-03-29T03:30:01", "03-30 02:30 CEST"),
        ("02:30", "day", "2026-10-24T02:30", "2026-10-24T02:30:01", "10-25 02:30 CEST"),  # the clock shows it twice
        ("02:30", "day", "2026-10-25T02:30", "2026-10-25T02:30:01", "10-26 02:30 CET"),
        (None, "6h", "2026-10-25T01:00", "2026-10-25T01:00:01", "10-25 06:00 CET"),  # hours that pass
        (None, "6h", "2026-11-28T01:00", "2026-11-28T20:00", "11-29 01:00 CET"),  # three were missed
    ],
)
def test_the_next_start_is_after_now_at_the_time_that_the_clock_of_the_wall_shows(
    at: str | None, every: str, due: str, now: str, following: str
) -> None:
    assert local(next_start(at, every, seconds(due), seconds(now), BERLIN)) == following


def test_what_is_scheduled_once_has_no_next_start_and_the_first_is_the_one_that_comes() -> None:
    now = seconds("2026-11-28T22:00")
    assert next_start("22:00", None, now, now) is None
    assert local(coming("22:01", now, BERLIN)) == "11-28 22:01 CET"
    assert local(coming("22:00", now, BERLIN)) == "11-29 22:00 CET"
    assert local(coming("07:00", now, BERLIN, weekdays=True)) == "11-30 07:00 CET"  # the 28th is a Saturday


@pytest.mark.parametrize("text", ["25:00", "7", "", "22:00:00", "٢٢:٠٠ "])
def test_what_is_no_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="BAD_SCHEDULE"):
        time_of_day(text)


@pytest.mark.parametrize("text", ["0h", "745h", "6", "h", "1.5h", "month", "-1h", ""])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="BAD_SCHEDULE"):
        hours(text)
