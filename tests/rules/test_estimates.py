"""What tasks may take and cost: the attempts that are most like them count, and what is not known is said."""

from __future__ import annotations

import pytest

from workbench.rules.estimates import Attempt, Spread, in_words, similar

EARLIER = [
    Attempt("Fit", "implementer", "claude", 60, 0.5),
    Attempt("Fit", "implementer", "codex", 30, 0.1),
    Attempt("Plot", "implementer", "claude", 10, None),
    Attempt("Fit", "reviewer", "claude", 5, 0.01),
]


@pytest.mark.parametrize(
    ("title", "persona", "profile", "basis", "seconds"),
    [
        ("Fit", "implementer", "codex", "task", [30]),
        ("Fit", "implementer", "gemini", "task", [60, 30]),  # nothing is known of it: all profiles count
        ("Draw", "implementer", "claude", "persona", [60, 10]),
        ("Fit", "tester", "claude", None, []),
    ],
)
def test_the_attempts_that_are_most_alike_count(
    title: str, persona: str, profile: str, basis: str | None, seconds: list[float]
) -> None:
    found, alike = similar(title, persona, profile, EARLIER)
    assert (found, [attempt.seconds for attempt in alike]) == (basis, seconds)


def test_what_several_tasks_take_together_leaves_out_those_of_which_nothing_is_known() -> None:
    assert Spread.total([Spread.of([1, 2, 6]), None, Spread.of([10])]) == Spread(11, 12, 16)
    assert Spread.total([None]) is None
    assert Spread.of([]) is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0, 0, 0, None, None), "Nothing is left to do."),
        ((0, 3, 0, None, None), "Nothing is known of what such tasks take and cost."),
        (
            (2, 3, 5, Spread(20, 100, 9_000), Spread(0.1, 0.25, 3)),
            "2 of 3 tasks are like earlier ones (5 attempts): 100 s (20 s to 2.5 h) of work are expected; "
            "$0.25 ($0.10 to $3.00) cost.",
        ),
        (
            (1, 1, 1, Spread(300, 300, 300), None),
            "The task is like earlier ones (1 attempt): 5 min of work are expected; of the cost nothing is known.",
        ),
    ],
)
def test_an_estimate_is_said_in_few_words(arguments: tuple, sentence: str) -> None:  # type: ignore[type-arg]
    assert in_words(*arguments) == sentence
