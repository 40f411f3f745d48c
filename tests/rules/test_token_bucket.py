"""How fast somebody may go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.token_bucket import TokenBucket


def test_a_burst_may_have_all_of_it_and_it_fills_again_as_time_passes_up_to_one_burst() -> None:
    pace = TokenBucket(2, 10, now=0)
    assert [pace.take(0) for _ in range(21)] == [True] * 20 + [False]
    assert sum(pace.take(1_000_000) for _ in range(100)) == 20
    pace = TokenBucket(2, 1, now=0)
    assert [pace.take(now) for now in (0, 0, 0.4, 0.5, 0.5)] == [True, True, False, True, False]


@given(st.lists(st.floats(0, 1), max_size=300))
def test_never_more_than_a_burst_and_the_rate_are_let_through(pauses: list[float]) -> None:
    pace, now, taken = TokenBucket(5, 2, now=0), 0.0, 0
    for pause in pauses:
        now += pause
        taken += pace.take(now)
    assert taken <= 10 + 5 * now + 1e-6
