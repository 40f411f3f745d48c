"""The hours of a plan: each says what was worked on, or why nothing was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.model import SECOND
from workbench.rules.hours import HOUR, SHORT, Hour, Moment, Stretch, by_hour, gaps

MINUTE = 60 * SECOND


def test_an_hour_says_what_was_worked_on_and_why_at_other_times_nothing_was() -> None:
    work = [Stretch(10 * MINUTE, 40 * MINUTE, "1"), Stretch(30 * MINUTE, 70 * MINUTE, "2")]
    reasons = [Stretch(0, 5 * MINUTE, "no server ran"), Stretch(0, 20 * MINUTE, "approval 3 waited for you")]
    moments = [Moment(40 * MINUTE, "completed", "1"), Moment(70 * MINUTE, "completed", "2")]
    first, second = by_hour(0, 90 * MINUTE, work, reasons, moments)
    assert first == Hour(
        start=0,
        end=HOUR,
        worked=50 * MINUTE,
        tasks=("1", "2"),
        waited=(("no server ran", 5 * MINUTE), ("approval 3 waited for you", 5 * MINUTE)),
        happened=(("completed", ("1",)),),
        unexplained=0,
    )
    assert (second.worked, second.happened, second.unexplained) == (10 * MINUTE, (("completed", ("2",)),), 20 * MINUTE)


def test_hours_in_which_the_same_is_waited_for_are_one_line() -> None:
    held = Stretch(0, 5 * HOUR, "held")
    [night] = by_hour(10 * MINUTE, 5 * HOUR, [], [held], [])
    assert (night.start, night.end, night.waited) == (10 * MINUTE, 5 * HOUR, (("held", 5 * HOUR - 10 * MINUTE),))


def test_what_happens_at_the_very_end_belongs_to_the_last_hour() -> None:
    [*_, last] = by_hour(0, 2 * HOUR, [], [], [Moment(2 * HOUR, "merged", "lab")])
    assert last.happened == (("merged", ("lab",)),)


stretches = st.lists(
    st.builds(lambda start, length: Stretch(start, start + length, "x"), st.integers(0, 9 * HOUR), st.integers(0, HOUR))
)


@given(stretches, stretches)
def test_all_time_is_worked_on_or_explained_or_said_to_be_unexplained(
    work: list[Stretch], reasons: list[Stretch]
) -> None:
    hours = by_hour(7 * MINUTE, 9 * HOUR, work, reasons, [])
    assert [hour.start for hour in hours] == [7 * MINUTE, *(hour.end for hour in hours[:-1])]
    assert hours[-1].end == 9 * HOUR
    for hour in hours:
        told = hour.worked + sum(length for _, length in hour.waited) + hour.unexplained
        lasted = -(-(hour.end - hour.start) // HOUR)
        assert hour.end - hour.start - lasted * SHORT <= told <= hour.end - hour.start
    covered = gaps(0, 9 * HOUR, work, "")
    assert sum(hour.worked for hour in by_hour(0, 9 * HOUR, work, [], [])) == 9 * HOUR - sum(
        one.end - one.start for one in covered
    )
