"""Bill length and depth: one trend over all penguins, the opposite one within each species."""

import _root  # noqa: F401
from penguins.chart import COLOURS, INK, Chart
from penguins.data import Penguin, column, complete, read_penguins
from penguins.results import Finding, Table, save
from penguins.script import Outcome, run
from penguins.stats import Line, fit_line, group, summarise

LENGTH, DEPTH = "bill_length_mm", "bill_depth_mm"
ALL = "All"

Groups = dict[str, list[Penguin]]
Lines = dict[str, Line]


def measures(birds: list[Penguin]) -> tuple[list[float], list[float]]:
    return column(birds, LENGTH), column(birds, DEPTH)


def is_reversed(lines: Lines) -> bool:
    """Simpson's paradox: every group shows the opposite of what all show together."""
    return all(line.r * lines[ALL].r < 0 for name, line in lines.items() if name != ALL)


def find(groups: Groups, lines: Lines) -> Finding:
    within = ", ".join(f"{name} {line.r:.2f}" for name, line in lines.items() if name != ALL)
    paradox = is_reversed(lines)
    verdict = "Simpson's paradox" if paradox else "No reversal"
    return Finding(
        title="Bills",
        text=f"{verdict}: the correlation of bill length and depth is {lines[ALL].r:.2f} "
        f"over all penguins, but by species it is {within}.",
        figures={
            "penguins": len(groups[ALL]),
            "correlation": {name: round(line.r, 4) for name, line in lines.items()},
            "slope": {name: round(line.slope, 4) for name, line in lines.items()},
            "simpsons_paradox": paradox,
        },
        table=Table(
            ["Species", "Penguins", "Length (mm)", "Depth (mm)", "Correlation", "Slope"],
            [_row(name, birds, lines[name]) for name, birds in groups.items()],
        ),
    )


def draw(groups: Groups, lines: Lines) -> Chart:
    chart = Chart("Bill depth against bill length", (30, 62), (12, 22))
    chart.x_axis("Bill length (mm)", range(30, 61, 5))
    chart.y_axis("Bill depth (mm)", {tick: str(tick) for tick in range(12, 23, 2)})
    colours = {**COLOURS, ALL: INK}
    chart.legend({f"{name}  r = {line.r:.2f}": colours[name] for name, line in lines.items()})
    for name, colour in COLOURS.items():
        for length, depth in zip(*measures(groups[name]), strict=True):
            chart.dot(length, depth, colour)
    for name, line in lines.items():
        lengths, _ = measures(groups[name])
        ends = [(x, line.at(x)) for x in (min(lengths), max(lengths))]
        chart.line(ends, colours[name], dashes="7 5" if name == ALL else "none")
    return chart


def _row(name: str, birds: list[Penguin], line: Line) -> list[str]:
    sizes = map(summarise, measures(birds))
    means = [f"{size.mean:.1f} ± {size.sd:.1f}" for size in sizes]
    return [name, str(len(birds)), *means, f"{line.r:.2f}", f"{line.slope:.3f}"]


def work() -> Outcome:
    penguins = complete(read_penguins(), LENGTH, DEPTH)
    groups = {**group(penguins, lambda p: p.species), ALL: penguins}
    lines = {name: fit_line(*measures(birds)) for name, birds in groups.items()}
    finding = find(groups, lines)
    artifacts = save("bills", finding, draw(groups, lines))
    return Outcome(finding.text, finding.figures, artifacts)


if __name__ == "__main__":
    run(work)
