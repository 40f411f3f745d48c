"""Series of several runs: their means by step, and the best run; the panel's JavaScript in Node."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.panels.conftest import Ask

pytestmark = pytest.mark.node
MODULE = "runs/series.js"
STEPS = st.lists(st.integers(0, 20), min_size=1, unique=True).map(sorted)
VALUES = st.floats(-1e6, 1e6)
SERIES = STEPS.flatmap(
    lambda steps: st.lists(VALUES, min_size=len(steps), max_size=len(steps)).map(
        lambda values: [list(point) for point in zip(steps, values, strict=True)]
    )
)


def test_the_mean_of_runs_has_those_that_are_under_way_at_a_step(call: Ask) -> None:
    thinned, short = [[0, 1.0], [4, 5.0]], [[0, 3.0], [1, 4.0], [2, 5.0]]
    means = call(MODULE, "means", [thinned, short])
    assert [[step, mean] for step, mean, _, _ in means] == [[0, 2.0], [1, 3.0], [2, 4.0], [4, 5.0]]
    assert means[0][3] - means[0][1] == pytest.approx(statistics.stdev([1.0, 3.0]))
    assert means[-1][2:] == [5.0, 5.0]


@given(series=st.lists(SERIES, min_size=1, max_size=4))
def test_a_mean_is_between_the_lowest_and_the_highest_value(call: Ask, series: list[list[list[float]]]) -> None:
    values = [value for points in series for _, value in points]
    means = call(MODULE, "means", series)
    assert [step for step, *_ in means] == sorted({step for points in series for step, _ in points})
    assert all(min(values) - 1e-3 <= mean <= max(values) + 1e-3 and low <= high for _, mean, low, high in means)


def test_the_best_run_has_the_lowest_or_highest_number(call: Ask) -> None:
    values = [0.5, "NaN", 0.1, None, 0.9]
    runs = [{"id": at, "metrics": {} if value is None else {"loss": value}} for at, value in enumerate(values)]
    assert [call(MODULE, "bestOf", runs, "loss", which) for which in ("lowest", "highest")] == [2, 4]
    assert call(MODULE, "bestOf", runs[1:2], "loss", "lowest") is None
