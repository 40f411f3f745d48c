"""Times on the wire and of old databases, and clocks that were set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.legacy.source import parse_time
from workbench.model import SECOND, iso
from workbench.services.tasks.expiry import was_set

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
NOON = int(datetime(2024, 3, 1, 12, tzinfo=UTC).timestamp()) * SECOND
ZONES = st.one_of(st.none(), st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))))
TIMES = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=ZONES)


@given(st.integers(0, LAST))
def test_a_time_is_written_to_the_millisecond_it_began_in(at: int) -> None:
    written = iso(at)
    assert len(written) == len("2026-11-21T13:26:15.000Z")
    assert datetime.fromisoformat(written) == EPOCH + timedelta(milliseconds=at // 1_000)


@pytest.mark.parametrize(
    ("seconds", "noticed"),
    [(0, False), (0.4, False), (-2, False), (2, False), (2.001, True), (-3_600, True), (10**9, True)],
)
def test_a_clock_that_moved_on_its_own_was_set_unless_it_is_a_matter_of_seconds(seconds: float, noticed: bool) -> None:
    assert was_set(5 * SECOND, int((5 + seconds) * SECOND)) is noticed


@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("2024-03-01T12:00:00", NOON),
        ("2024-03-01 12:00:00", NOON),
        ("2024-03-01 12:00", NOON),
        ("  2024-03-01 12:00:00\n", NOON),
        ("2024-03-01T12:00:00.25", NOON + SECOND // 4),
        ("2024-03-01T12:00:00.123456789", NOON + 123_456),
        ("2024-03-01T12:00:00,5", NOON + SECOND // 2),
        ("2024-03-01T12:00:00Z", NOON),
        ("2024-03-01T12:00:00z", NOON),
        ("2024-03-01 12:00:00 Z", NOON),
        ("2024-03-01 12:00:00 UTC", NOON),
        ("2024-03-01 12:00:00 gmt", NOON),
        ("2024-03-01T14:00:00+02:00", NOON),
        ("2024-03-01 14:00:00 +0200", NOON),
        ("2024-03-01T07:00:00-05:00", NOON),
        ("2024-03-01", NOON - 12 * 3600 * SECOND),
        (NOON // SECOND, NOON),
        (NOON / SECOND, NOON),
        (NOON // 1_000, NOON),
        (NOON, NOON),
        (0, 0),
        (-1.5, -3 * SECOND // 2),
    ],
)
def test_a_time_is_read_in_every_form_in_which_it_was_written(written: object, at: int) -> None:
    assert parse_time(written) == at


@pytest.mark.parametrize(
    "written",
    [
        *(None, "", " ", "yesterday", "12:00", "2024-13-01", "2024-02-30T00:00:00", "2024-03-01T25:00:00", "Z", "NULL"),
        *(True, b"2024-03-01", float("nan"), float("inf"), 1e300, -1e300, 10**30, "0001-01-01T00:00:00+14:00"),
    ],
)
def test_an_invalid_time_is_parsed_as_none(written: object) -> None:
    assert parse_time(written) is None


@given(TIMES, st.sampled_from(["T", " "]), st.sampled_from(["", " "]))
def test_a_time_in_iso_8601_is_read_exactly(time: datetime, between: str, before_zone: str) -> None:
    text = time.isoformat(between)
    if time.tzinfo and before_zone:
        text = text[:-6] + before_zone + text[-6:]
    moment = time if time.tzinfo else time.replace(tzinfo=UTC)
    assert parse_time(text) == (moment - EPOCH) // timedelta(microseconds=1)


@given(st.integers(10**8, 10**10), st.sampled_from([1, 1_000, 1_000_000]))
def test_a_number_is_read_in_seconds_milliseconds_and_microseconds(seconds: int, scale: int) -> None:
    assert parse_time(seconds * scale) == seconds * SECOND


@given(st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.none(), st.text("0123456789-:+ TZ.")))
def test_any_parsed_time_can_be_shown(written: object) -> None:
    at = parse_time(written)
    assert at is None or iso(at).endswith("Z")
