"""Who worked when: each attempt as a bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration

if TYPE_CHECKING:
    import altair
    import pandas

OUTCOMES = {
    "completed": charts.GREEN,
    "failed": charts.RED,
    "expired": charts.ORANGE,
    "released": charts.GREY,
    "cancelled": charts.GREY,
    "running": charts.BLUE,
}

WORDS = {name: name for name in OUTCOMES if name not in ("completed", "running")} | {
    "expired": "lost their lease",
    "running": "still run",
}


def sentence(frame: pandas.DataFrame) -> str:
    """How many attempts, by how many agents, how long."""
    agents = counted(frame["agent"].nunique(), "agent")
    made = f"{counted(len(frame), 'attempt')} at {counted(frame['task'].nunique(), 'task')} by {agents}"
    ends = frame["outcome"].value_counts()
    others = "".join(f", {ends[name]:,} {word}" for name, word in WORDS.items() if ends.get(name))
    return f"{made} within {duration(frame['end_s'].max())}; {ends.get('completed', 0):,} completed theirs{others}."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """Each attempt as a bar from its start to its end, coloured by its outcome, for the tasks that began last."""
    import altair as alt

    frame, unit = charts.in_unit(frame, "start_s", "end_s")
    tasks = list(dict.fromkeys(frame["task"]))
    order = tasks[-charts.MOST_ROWS :]
    frame = frame[frame["task"].isin(order)]
    present = list(dict.fromkeys(frame["outcome"]))
    chart = alt.Chart(charts.rows_of(frame), width=charts.WIDTH, height=alt.Step(26))
    return charts.finished(
        chart.mark_bar(cornerRadius=3, height=15, strokeWidth=2).encode(
            x=charts.axis_of_numbers("start_s", f"{unit} since the first claim", zero=False),
            x2="end_s",
            y=charts.axis_of_names("task", order),
            color=charts.colours("outcome", OUTCOMES, present),
            stroke=alt.Stroke("outcome:N", scale=charts.scale_of(OUTCOMES, present), legend=None),
            detail="attempt:Q",
        ),
        charts.note_of(len(order), len(tasks), "tasks", "that began last"),
    )


GANTT = Standard("gantt", "who worked when", "No task has been claimed yet.", sentence, picture)
