"""What tasks wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration

if TYPE_CHECKING:
    import altair
    import pandas

FOR = {"dependency": "a dependency", "agent": "an agent", "person": "a person", "retry": "a retry"}


def sentence(frame: pandas.DataFrame) -> str:
    """How long on average, how long at most, and for what most."""
    number, total = frame["of_tasks"].iloc[0], frame["total_s"].sum()
    longest = frame.iloc[int(frame["longest_s"].argmax())]
    most = FOR[frame["waits_for"].iloc[0]]
    mean = f"{counted(number, 'task')} waited {duration(total / number)} on average, most of it for {most}"
    now, blocked = frame["now_waiting"].sum(), frame["of_blocked"].iloc[0]
    still = f"; {counted(now, 'wait')} still {'lasts' if now == 1 else 'last'}" if now else ""
    never = f"; {counted(blocked, 'task')} cannot start any more" if blocked else ""
    text = f"{mean}; the longest single wait was {duration(longest['longest_s'])} for {FOR[longest['waits_for']]}"
    return f"{text}{still}{never}."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """A bar for each reason."""
    rows, unit = charts.in_unit(frame, "total_s")
    return charts.bars(
        rows, "waits_for", "total_s", f"{unit} waited by all tasks together", what="reasons", which="that took longest"
    )


WAITS = Standard(
    "waits", "waits for dependencies, agents, persons and retries", "No task has waited yet.", sentence, picture
)
