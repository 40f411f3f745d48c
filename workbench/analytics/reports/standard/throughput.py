"""Tasks completed over time, by persona."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration, enumerated, was, without

if TYPE_CHECKING:
    import altair
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """How many, how fast, and which persona most."""
    total = frame["completed"].sum()
    width = frame["interval_s"].iloc[0]
    of_personas = frame.groupby("persona")["completed"].sum().sort_values(ascending=False, kind="stable")
    first = of_personas[of_personas == of_personas.iloc[0]]
    most = f"most by {enumerated(first.index.tolist())} ({first.iloc[0]:,}{' each' if len(first) > 1 else ''})"
    span = duration(frame["from_s"].max() + width)
    return f"{counted(total, 'task')} {was(total)} completed within {span}, {most}{without(frame.iloc[0])}."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """Stacked bars over time."""
    import altair as alt

    frame, unit = charts.in_unit(frame.assign(to_s=frame["from_s"] + frame["interval_s"]), "from_s", "to_s")
    highest = int(frame.groupby("from_s")["completed"].sum().max())
    frame = charts.grouped(frame, "persona")
    personas = list(dict.fromkeys(frame["persona"]))
    chart = alt.Chart(charts.rows_of(frame), width=charts.WIDTH, height=220).mark_bar()
    return charts.finished(
        chart.encode(
            x=charts.axis_of_numbers("from_s", f"{unit} since the first completion", binned=True),
            x2="to_s",
            y=charts.axis_of_counts("completed", "tasks completed", highest),
            color=charts.colours("persona", None, personas),
        )
    )


THROUGHPUT = Standard(
    "throughput", "tasks completed over time, by persona", "No task has been completed yet.", sentence, picture
)
