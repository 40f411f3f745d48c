"""What a check is, and what it may say that it measured."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.rules.tasks.check import check_of, in_short, metrics_of


def test_the_metrics_of_a_check_are_finite_numbers_by_name() -> None:
    assert metrics_of({"metrics": {"accuracy": 0.5, "n": 3}}) == {"accuracy": 0.5, "n": 3}
    assert metrics_of({}) == {}


@pytest.mark.parametrize(
    "value", ["a\0b", "\ud800", {"run": "a", "files": ["\ud800"]}, 3, {}, [], {"run": ""}, {"a": 1}]
)
def test_what_could_not_be_run_is_no_check(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_of(value)


@pytest.mark.parametrize("pattern", ["*.csv", "data/answer?", "data/[ab]"])
def test_a_pattern_that_would_hide_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="is a pattern and no path; name the file or its directory"):
        in_short({"run": "true", "hide": [pattern]})


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [1],
        {"metrics": [1]},
        *({"metrics": {"a": value}} for value in (True, "1", None, {"b": 1}, float("nan"), float("inf"), 10**400)),
        *({"metrics": {name: 1}} for name in ("", "a\n", "a=1", "a" * 101)),
    ],
    ids=lambda answer: str(answer)[:30],
)
def test_other_metrics_are_refused(answer: Any) -> None:
    with pytest.raises(ValueError, match=r"metric|\{"):
        metrics_of(answer)
