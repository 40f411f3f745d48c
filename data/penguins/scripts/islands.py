"""Which species lives on which island."""

import _root  # noqa: F401
from penguins.chart import COLOURS, Chart
from penguins.data import SPECIES, Penguin, read_penguins
from penguins.results import Finding, Table, save
from penguins.script import Outcome, run
from penguins.stats import group

Counts = dict[str, dict[str, int]]


def count(penguins: list[Penguin]) -> Counts:
    """How many penguins of each species there are on each island."""
    return {
        island: {name: sum(p.species == name for p in birds) for name in SPECIES}
        for island, birds in group(penguins, lambda p: p.island).items()
    }


def homes(counts: Counts) -> dict[str, list[str]]:
    """The islands on which each species was found."""
    return {name: [island for island, found in counts.items() if found[name]] for name in SPECIES}


def find(counts: Counts) -> Finding:
    text = "; ".join(f"{name} on {_listed(where)}" for name, where in homes(counts).items())
    return Finding(
        title="Who lives where",
        text=f"Where each species was found: {text}.",
        figures={"counts": counts, "homes": homes(counts)},
        table=Table(
            ["Island", *SPECIES, "All"],
            [
                [island, *(_share(found, name) for name in SPECIES), str(sum(found.values()))]
                for island, found in counts.items()
            ],
        ),
    )


def draw(counts: Counts) -> Chart:
    height = len(counts)
    chart = Chart("Penguins by island and species", (0, 180), (0, height))
    chart.x_axis("Penguins", range(0, 181, 30))
    chart.legend({name: COLOURS[name] for name in SPECIES})
    middles = {height - 0.5 - place: island for place, island in enumerate(counts)}
    chart.y_axis("", middles)
    for middle, island in middles.items():
        _draw_bar(chart, middle, counts[island])
    return chart


def _draw_bar(chart: Chart, middle: float, found: dict[str, int]) -> None:
    start = 0
    for name in SPECIES:
        if number := found[name]:
            chart.bar((start, start + number), (middle - 0.3, middle + 0.3), COLOURS[name])
            centre = start + number / 2
            chart.text(centre, middle, str(number), anchor="middle", colour="#ffffff")
            start += number


def _share(found: dict[str, int], name: str) -> str:
    return f"{found[name]} ({found[name] / sum(found.values()):.0%})"


def _listed(islands: list[str]) -> str:
    *most, last = islands
    return f"{', '.join(most)} and {last}" if most else f"{last} only"


def work() -> Outcome:
    counts = count(read_penguins())
    finding = find(counts)
    artifacts = save("islands", finding, draw(counts))
    return Outcome(finding.text, finding.figures, artifacts)


if __name__ == "__main__":
    run(work)
