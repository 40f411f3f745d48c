"""Times on the wire: ISO 8601 in UTC, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from workbench.model import iso

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


@given(st.integers(0, LAST))
def test_a_time_is_written_to_the_millisecond_it_began_in(at: int) -> None:
    written = iso(at)
    assert len(written) == len("2026-11-21T13:26:15.000Z")
    assert datetime.fromisoformat(written) == EPOCH + timedelta(milliseconds=at // 1_000)
