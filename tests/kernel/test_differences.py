"""Long values side by side show where they differ."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernel_ext.personalities import LONGEST, beside


def test_long_values_are_shown_from_shortly_before_they_differ() -> None:
    schema = {"type": "object", "properties": {f"parameter_{n}": {"type": "string"} for n in range(9)}}
    before, after = beside(schema | {"required": ["parameter_1"]}, schema | {"required": ["parameter_2"]})
    assert before.startswith("…")
    assert before.endswith('["parameter_1"]}')
    assert after.endswith('["parameter_2"]}')


def test_short_values_are_shown_whole() -> None:
    assert beside("1.0", None) == ("1.0", "")


@given(st.text("ab", max_size=200), st.text("ab", max_size=200))
def test_values_that_differ_look_different_and_fit(before: str, after: str) -> None:
    shown = beside(before, after)
    assert (shown[0] == shown[1]) == (before == after)
    assert max(map(len, shown)) <= LONGEST
