"""Ids that Workbench makes: UUIDs of version 7."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.model import uuid7


@given(st.integers(0, 2**48 * 1_000 - 2))
def test_an_id_has_its_time_and_sorts_by_its_microsecond(now: int) -> None:
    made = uuid7(now)
    assert (made.version, made.variant, made.int >> 80) == (7, "specified in RFC 4122", now // 1_000)
    assert str(made) < str(uuid7(now + 1))
    assert made != uuid7(now)
