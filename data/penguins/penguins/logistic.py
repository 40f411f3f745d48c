"""Logistic regression by gradient descent, within a budget of iterations."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from penguins.script import TryAgain

Vector = Sequence[float]


class NotConverged(TryAgain):
    def __init__(self, iterations: int, gradient: float, tolerance: float) -> None:
        super().__init__(
            f"Not converged after {iterations} iterations: the gradient is {gradient:.1e}, "
            f"wanted is {tolerance:.0e}. Try again with a larger --max-iterations."
        )


class Budget(NamedTuple):
    max_iterations: int
    tolerance: float


class Fit(NamedTuple):
    weights: list[float]
    iterations: int


def probability(weights: Vector, features: Vector) -> float:
    return 1 / (1 + math.exp(-sum(w * x for w, x in zip(weights, features, strict=True))))


def fit(rows: Sequence[Vector], labels: Sequence[bool], budget: Budget) -> Fit:
    """Weights at which no component of the mean gradient exceeds the tolerance.

    The step of 4 is safe for features whose second-moment matrix has no eigenvalue above 1,
    such as a standardised column beside the indicators of groups it was centred in.

    Raises:
        NotConverged: the budget was used up before.
    """
    weights = [0.0] * len(rows[0])
    for iteration in range(budget.max_iterations + 1):
        gradient = _gradient(weights, rows, labels)
        steepest = max(map(abs, gradient))
        if steepest <= budget.tolerance:
            return Fit(weights, iteration)
        weights = [w - 4 * g for w, g in zip(weights, gradient, strict=True)]
    raise NotConverged(budget.max_iterations, steepest, budget.tolerance)


def _gradient(weights: Vector, rows: Sequence[Vector], labels: Sequence[bool]) -> list[float]:
    errors = [probability(weights, x) - y for x, y in zip(rows, labels, strict=True)]
    columns = zip(*rows, strict=True)
    return [sum(e * x for e, x in zip(errors, c, strict=True)) / len(rows) for c in columns]
