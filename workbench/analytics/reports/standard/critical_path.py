"""The chain of tasks that decided when a plan was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration, others

if TYPE_CHECKING:
    import altair
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """Of the plan that was completed last: its length, its waits, and its longest step."""
    last = _last(frame)
    longest = last.iloc[int(last["seconds"].argmax())]
    left = others(first := last.iloc[0], "of_")
    ended = f"the last of {first['of_completed']:,} completed tasks of {first['of_plan']} ended after"
    what = (
        f"{ended} {duration(last['seconds'].sum())}"
        if left
        else f"{first['of_plan']} took {duration(last['seconds'].sum())}"
    )
    text = f"{counted(len(last), 'task')} decided that {what}"
    unfinished = f"; it is not finished: {left}" if left else ""
    waited = f"{duration(last['wait_s'].sum())} of it nobody worked"
    return f"{text}; {waited}, and {longest['task']} took longest ({duration(longest['seconds'])}){unfinished}."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """The steps of the plan that was completed last, one after another: waiting and work."""
    import altair as alt

    steps, unit = charts.in_unit(_last(frame), "start_s", "end_s", "wait_s")
    last, order, note = charts.first(steps, "task", "tasks", "that came first")
    wait = last.assign(part="waiting", from_s=last["start_s"], to_s=last["start_s"] + last["wait_s"])
    work = last.assign(part="work", from_s=last["start_s"] + last["wait_s"], to_s=last["end_s"])
    rows = wait[["task", "part", "from_s", "to_s"]].to_dict("records") + work[
        ["task", "part", "from_s", "to_s"]
    ].to_dict("records")
    chart = alt.Chart(alt.Data(values=rows), width=charts.WIDTH, height=alt.Step(26)).mark_bar(
        height=15, cornerRadius=3
    )
    return charts.finished(
        chart.encode(
            x=charts.axis_of_numbers("from_s", f"{unit} since the first task was created"),
            x2="to_s",
            y=charts.axis_of_names("task", order),
            color=charts.colours("part", {"waiting": charts.ORANGE, "work": charts.BLUE}, ["waiting", "work"]),
        ),
        note or f"Of {last['of_plan'].iloc[0]}; waits are drawn first, also where an attempt was before them.",
    )


def _last(frame: pandas.DataFrame) -> pandas.DataFrame:
    """The steps of the plan that was completed last."""
    last: pandas.DataFrame = frame[frame["of_plan"] == frame["of_plan"].iloc[0]]
    return last


CRITICAL_PATH = Standard(
    "critical_path",
    "the chain of tasks that decided when a plan was done",
    "No task has been completed yet.",
    sentence,
    picture,
)
