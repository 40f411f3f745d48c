"""When agents held tasks, and which share of the time that they were here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, percent

if TYPE_CHECKING:
    import altair
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """The share of all, of the busiest and of the idlest."""
    agents = frame.drop_duplicates("agent")
    share = frame["busy_s"].sum() / agents["here_s"].sum() if agents["here_s"].sum() else 0.0
    busiest, idlest = agents.iloc[0], agents.iloc[-1]
    text = (
        f"{counted(len(agents), 'agent')} held tasks {percent(min(1.0, share))} of the time until the last work ended"
    )
    if len(agents) == 1:
        return f"{text} ({busiest['agent']})."
    most, least = (
        f"{row['agent']} {word} ({percent(row['share'])})" for row, word in ((busiest, "most"), (idlest, "least"))
    )
    return f"{text}: {most}, {least}."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """A line for each agent, with a bar for each interval in which it held tasks."""
    import altair as alt

    frame, order, note = charts.first(frame, "agent", "agents", "that were busiest")
    if len(frame) > charts.MOST_MARKS:
        note = charts.note_of(charts.MOST_MARKS, len(frame), "intervals", "that were longest")
        frame = frame.nlargest(charts.MOST_MARKS, "busy_s")
    frame, unit = charts.in_unit(frame, "start_s", "end_s")
    frame = charts.grouped(frame.dropna(subset="start_s"), "persona")
    personas = list(dict.fromkeys(frame["persona"]))
    chart = alt.Chart(charts.rows_of(frame), width=charts.WIDTH, height=alt.Step(26)).mark_bar(
        height=15, cornerRadius=3, strokeWidth=1
    )
    return charts.finished(
        chart.encode(
            x=charts.axis_of_numbers("start_s", f"{unit} since the first claim", zero=False),
            x2="end_s",
            y=charts.axis_of_names("agent", order),
            color=charts.colours("persona", None, personas),
            stroke=alt.Stroke("persona:N", scale=charts.scale_of(None, personas), legend=None),
        ),
        note,
    )


UTILISATION = Standard(
    "utilisation", "when agents held tasks, and how busy they were", "No agent has held a task yet.", sentence, picture
)
