"""What processes used over time: processor and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import duration

if TYPE_CHECKING:
    import altair
    import pandas

HEIGHT = 150
MOST_POINTS = 100
"""Of more samples, the points are small."""


def sentence(frame: pandas.DataFrame) -> str:
    """Who used the most memory, and who the most time of the processor."""
    large = frame.iloc[int(frame["memory_mb"].argmax())]
    spent = frame.groupby(["name", "pid"])["cpu_seconds"].max().groupby("name").sum()
    text = f"Of {frame['name'].nunique():,} measured, {large['name']} used most memory ({large['memory_mb']:,.0f} MB)"
    return f"{text}, {spent.idxmax()} most processor time ({duration(spent.max())})."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """Memory and processor over time, a line for each process."""
    import altair as alt

    order = frame.groupby("name")["memory_mb"].max().sort_values(ascending=False, kind="stable").index.tolist()
    names = order[: len(charts.PALETTE)]
    samples, unit = charts.in_unit(frame[frame["name"].isin(names)], "from_s")
    newest = samples.tail(charts.MOST_MARKS)
    note = charts.note_of(len(names), len(order), "names", "with most memory")
    if len(newest) < len(samples):
        note = charts.note_of(len(newest), len(frame), "samples", "that are newest")
    points = {"size": 12} if len(newest) > MOST_POINTS else {"size": 30}
    base = alt.Chart(charts.rows_of(newest), width=charts.WIDTH, height=HEIGHT).mark_line(point=points)
    x = charts.axis_of_numbers("from_s", f"{unit} since the first sample", zero=False)
    colour = charts.colours("name", None, names)
    panes = [
        base.encode(x=x, y=alt.Y(f"{column}:Q", title=title), color=colour, detail="pid:N")
        for column, title in (("memory_mb", "memory, MB"), ("cpu_percent", "percent of a processor"))
    ]
    return charts.finished(alt.vconcat(*panes), note)


PROCESSES = Standard(
    "processes",
    "processor and memory of processes over time",
    "No process has been sampled yet.",
    sentence,
    picture,
)
