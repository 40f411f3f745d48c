"""How long tasks take from their creation to their completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration, percent, without

if TYPE_CHECKING:
    import altair
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """The median, the slow end, and how much of it was work."""
    lead = frame["lead_s"]
    work = frame["work_s"].sum() / lead.sum() if lead.sum() else 0.0
    spread = f"{duration(lead.median())} on median and {duration(lead.max())} at most ({frame['task'].iloc[0]})"
    text = f"From creation to completion {counted(len(frame), 'task')} took {spread}; {percent(work)} of it was work"
    return f"{text}{without(frame.iloc[0])}."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """How many tasks took how long."""
    import altair as alt
    import pandas as pd

    frame, unit = charts.in_unit(frame, "lead_s")
    edges = pd.cut(frame["lead_s"], bins=min(30, max(1, frame["lead_s"].nunique())), include_lowest=True)
    counts = edges.value_counts(sort=False)
    binned = pd.DataFrame(
        {
            "from_s": [max(0.0, i.left) for i in counts.index],
            "to_s": [i.right for i in counts.index],
            "tasks": counts.tolist(),
        }
    )
    chart = alt.Chart(charts.rows_of(binned), width=charts.WIDTH, height=220).mark_bar(color=charts.BLUE)
    return charts.finished(
        chart.encode(
            x=charts.axis_of_numbers("from_s", f"{unit} from creation to completion", binned=True),
            x2="to_s",
            y=charts.axis_of_counts("tasks", "tasks", int(counts.max())),
        )
    )


LEAD_TIMES = Standard(
    "lead_times", "from creation to completion: waiting and work", "No task has been completed yet.", sentence, picture
)
