"""Groups of tasks side by side: plans, personas, sessions, projects, worktrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration, enumerated, others

if TYPE_CHECKING:
    import altair
    import pandas

WAITS = {"dependency_s": "dependency", "agent_s": "agent", "person_s": "person", "retry_s": "retry"}


def sentence(frame: pandas.DataFrame) -> str:
    """What was compared, and which was fastest."""
    names = frame["compared"].tolist()
    known = frame.dropna(subset="median_lead_s")
    if len(known) < 2:
        return f"{enumerated(names)}: there are no two groups with completed tasks to compare{_left(frame)}."
    fast, slow = known.iloc[int(known["median_lead_s"].argmin())], known.iloc[int(known["median_lead_s"].argmax())]
    text = f"{counted(len(frame), 'group')} ({enumerated(names)}): a completed task took"
    text = f"{text} {duration(fast['median_lead_s'])} on median"
    return f"{text} in {fast['compared']} and {duration(slow['median_lead_s'])} in {slow['compared']}{_left(frame)}."


def _left(frame: pandas.DataFrame) -> str:
    """The tasks of each group that are not counted, because they are not completed."""
    rows = [(row["compared"], others(row)) for row in frame.to_dict("records")]
    groups = [f"{name} ({counts})" for name, counts in rows if counts]
    return f"; not counted: {enumerated(groups)}" if groups else ""


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """What the tasks of each group waited for, per task."""
    renamed = frame.rename(columns=WAITS)
    long = renamed.melt(["compared", "created"], list(WAITS.values()), "waits_for", "seconds")
    long, unit = charts.in_unit(long.assign(per_task=long["seconds"] / long["created"]), "per_task")
    return charts.bars(
        long,
        "compared",
        "per_task",
        f"{unit} waited, per task",
        what="groups",
        which="with most tasks",
        colour="waits_for",
    )


COMPARISON = Standard(
    "comparison",
    "groups of tasks side by side, by plan or another column",
    "There are no tasks yet.",
    sentence,
    picture,
    groups_by="plan",
    compares="groups",
)
