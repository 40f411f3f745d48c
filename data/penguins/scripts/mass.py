"""Can a penguin's sex be told from its body mass, with and without knowing the species?

Exit code 75 says that the fit has not converged within --max-iterations: try again with more.
"""

import argparse
import math
import random
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple, Self

import _root  # noqa: F401
from penguins.chart import COLOURS, MUTED, Chart
from penguins.data import SPECIES, Penguin, column, complete, read_penguins
from penguins.logistic import Budget, fit, probability
from penguins.results import Finding, Table, save
from penguins.script import Outcome, run
from penguins.stats import group

MASS = "body_mass_g"
FOLDS = 10

Key = Callable[[Penguin], str]


def by_species(penguin: Penguin) -> str:
    return penguin.species


def together(_: Penguin) -> str:
    return "all"


def is_male(penguin: Penguin) -> bool:
    return penguin.sex == "male"


def mass_of(penguin: Penguin) -> float:
    (mass,) = column([penguin], MASS)
    return mass


class Scale(NamedTuple):
    """Mass as a deviation from its group's mean, in units of the common spread."""

    means: dict[str, float]
    spread: float

    @classmethod
    def of(cls, groups: dict[str, list[Penguin]]) -> Self:
        means = {name: fmean(column(birds, MASS)) for name, birds in groups.items()}
        squares = [(mass_of(p) - means[name]) ** 2 for name, birds in groups.items() for p in birds]
        return cls(means, math.sqrt(fmean(squares)))

    def features(self, name: str, mass: float) -> list[float]:
        """The scaled mass and an indicator for each group."""
        return [(mass - self.means[name]) / self.spread, *(float(name == g) for g in self.means)]


class Model(NamedTuple):
    """Logistic regression of being male on mass, with an intercept for each group."""

    key: Key
    scale: Scale
    weights: list[float]
    iterations: int

    @classmethod
    def fit(cls, penguins: Sequence[Penguin], key: Key, budget: Budget) -> Self:
        scale = Scale.of(group(penguins, key))
        rows = [scale.features(key(p), mass_of(p)) for p in penguins]
        return cls(key, scale, *fit(rows, [is_male(p) for p in penguins], budget))

    def probability(self, name: str, mass: float) -> float:
        return probability(self.weights, self.scale.features(name, mass))

    def is_right(self, penguin: Penguin) -> bool:
        guess = self.probability(self.key(penguin), mass_of(penguin)) > 0.5
        return guess == is_male(penguin)

    def even_mass(self, name: str) -> float:
        """The mass (g) at which both sexes are equally likely."""
        slope, *intercepts = self.weights
        intercept = dict(zip(self.scale.means, intercepts, strict=True))[name]
        return self.scale.means[name] - self.scale.spread * intercept / slope

    def odds_ratio(self, grams: float) -> float:
        return math.exp(self.weights[0] * grams / self.scale.spread)


def accuracy(penguins: Sequence[Penguin], key: Key, budget: Budget) -> float:
    """The share of penguins told right by models that have not seen them."""
    shuffled = random.Random(0).sample(penguins, len(penguins))
    right = 0
    for fold in range(FOLDS):
        seen = [p for place, p in enumerate(shuffled) if place % FOLDS != fold]
        right += sum(map(Model.fit(seen, key, budget).is_right, shuffled[fold::FOLDS]))
    return right / len(penguins)


def find(penguins: Sequence[Penguin], model: Model, budget: Budget) -> Finding:
    shares = {
        "mass_and_species": round(accuracy(penguins, by_species, budget), 4),
        "mass_alone": round(accuracy(penguins, together, budget), 4),
    }
    groups = group(penguins, by_species)
    return Finding(
        title="Body mass and sex",
        text=f"Mass and species together tell the sex of {shares['mass_and_species']:.0%} of the "
        f"penguins, mass alone of {shares['mass_alone']:.0%} ({FOLDS}-fold cross-validation). "
        f"Each 100 g more multiply the odds of being male by {model.odds_ratio(100):.2f}.",
        figures={
            "penguins": len(penguins),
            "accuracy": shares,
            "odds_ratio_per_100_g": round(model.odds_ratio(100), 4),
            "even_mass_g": {name: round(model.even_mass(name), 1) for name in groups},
            "iterations": model.iterations,
        },
        table=Table(
            ["Species", "Females", "Mean (g)", "Males", "Mean (g)", "Even odds at (g)"],
            [
                [name, *_sexes(birds), f"{model.even_mass(name):.0f}"]
                for name, birds in groups.items()
            ],
        ),
    )


def draw(penguins: Sequence[Penguin], model: Model) -> Chart:
    """The fitted probabilities, with each penguin as a tick: males above, females below."""
    chart = Chart("Probability of being male by body mass", (2600, 6400), (-0.2, 1.2))
    chart.x_axis("Body mass (g)", range(3000, 6001, 500))
    chart.y_axis("Probability of being male", {t / 4: f"{t / 4:.0%}" for t in range(5)})
    chart.legend({name: COLOURS[name] for name in SPECIES})
    chart.text(2620, 1.1, "males", anchor="start", colour=MUTED)
    chart.text(6380, -0.1, "females", anchor="end", colour=MUTED)
    for row, (name, birds) in enumerate(group(penguins, by_species).items()):
        for bird in birds:
            y = (1.17 if is_male(bird) else -0.04) - 0.05 * row
            chart.line([(mass_of(bird), y), (mass_of(bird), y - 0.035)], COLOURS[name], width=1)
        masses = range(int(min(column(birds, MASS))), int(max(column(birds, MASS))) + 1, 25)
        chart.line([(mass, model.probability(name, mass)) for mass in masses], COLOURS[name])
    return chart


def _sexes(birds: list[Penguin]) -> list[str]:
    sexes = group(birds, lambda p: str(p.sex))
    masses = [column(sexes[sex], MASS) for sex in ("female", "male")]
    return [cell for some in masses for cell in (str(len(some)), f"{fmean(some):.0f}")]


def work(budget: Budget) -> Outcome:
    penguins = complete(read_penguins(), MASS, "sex")
    model = Model.fit(penguins, by_species, budget)
    finding = find(penguins, model, budget)
    artifacts = save("mass", finding, draw(penguins, model))
    line = f"Converged after {model.iterations} iterations. {finding.text}"
    return Outcome(line, finding.figures, artifacts)


def read_budget() -> Budget:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-iterations", type=int, default=1000)
    parser.add_argument("--tolerance", type=float, default=1e-6)
    return Budget(**vars(parser.parse_args()))


if __name__ == "__main__":
    run(lambda: work(read_budget()))
