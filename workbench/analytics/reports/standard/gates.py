"""Gates: which pass, and how long they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration

if TYPE_CHECKING:
    import altair
    import pandas

COLOURS = {"passed": charts.GREEN, "failed": charts.RED}


def sentence(frame: pandas.DataFrame) -> str:
    """How many runs passed, and which gate is slowest."""
    slowest = frame.iloc[int(frame["longest_s"].argmax())]
    passed, runs = int(frame["passed"].sum()), counted(frame["runs"].sum(), "run")
    text = f"{passed:,} of {runs} of {counted(len(frame), 'gate')} passed"
    return f"{text}; the slowest took {duration(slowest['longest_s'])} (`{slowest['command']}`)."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """Runs of each gate, by outcome."""
    long = frame.melt("command", ["passed", "failed"], "outcome", "number")
    rows = long[long["number"] > 0]
    return charts.bars(
        rows,
        "command",
        "number",
        "runs",
        what="gates",
        which="that failed most",
        whole=True,
        colour="outcome",
        known=COLOURS,
    )


GATES = Standard("gates", "which gates pass, and how long they take", "No gate has been run yet.", sentence, picture)
