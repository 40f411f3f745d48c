"""Windows of time and their intervals, and rate limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.rules.activity import INTERVALS, Window, open_at_ends, placed, quantile, share
from workbench.rules.token_bucket import TokenBucket

NUMBERS = st.lists(st.integers(0, 9), min_size=INTERVALS, max_size=INTERVALS)


@given(st.integers(10**9, 10**16), st.integers(1, 10**12))
def test_the_last_interval_of_a_window_contains_the_present_and_it_moves_by_whole_ones(now: int, length: int) -> None:
    before, after = Window.ending(now, length), Window.ending(now + length // 3, length)
    assert before.starts[-1] <= now < before.starts[-1] + before.width
    assert length < INTERVALS or (after.since - before.since) % before.width == 0


@given(st.integers(0, 50), NUMBERS, NUMBERS)
def test_past_counts_of_open_items_follow_from_the_present_one(
    before: int, opened: list[int], closed: list[int]
) -> None:
    counts, count = [], before
    for one, other in zip(opened, closed, strict=True):
        count += one - other
        counts.append(count)
    if min(counts) >= 0:
        assert open_at_ends(counts[-1], opened, closed) == counts


def test_late_arrivals_belong_to_the_last_interval() -> None:
    positions = placed({0: 2, INTERVALS: 1, INTERVALS - 1: 4})
    assert (positions[0], positions[-1], sum(positions)) == (2, 5, 7)


def test_an_agent_that_came_late_is_measured_from_then_on() -> None:
    window = Window.ending(1_000_000, 600_000)
    assert share(100, window, window.now - 200) == 0.5
    assert share(100, window, window.now - 50) == 1.0
    assert share(0, window, window.now) == 0.0


def test_the_median_is_the_middle_value() -> None:
    assert [quantile([], 0.5), quantile([7], 0.95), quantile([1, 2, 9], 0.5)] == [None, 7, 2]


def test_a_burst_may_take_the_whole_allowance_which_refills_with_time() -> None:
    pace = TokenBucket(2, 10, now=0)
    assert [pace.take(0) for _ in range(21)] == [True] * 20 + [False]
    assert sum(pace.take(1_000_000) for _ in range(100)) == 20
    pace = TokenBucket(2, 1, now=0)
    assert [pace.take(now) for now in (0, 0, 0.4, 0.5, 0.5)] == [True, True, False, True, False]


@given(st.lists(st.floats(0, 1), max_size=300))
def test_a_token_bucket_lets_no_more_through_than_burst_and_rate(pauses: list[float]) -> None:
    pace, now, taken = TokenBucket(5, 2, now=0), 0.0, 0
    for pause in pauses:
        now += pause
        taken += pace.take(now)
    assert taken <= 10 + 5 * now + 1e-6
