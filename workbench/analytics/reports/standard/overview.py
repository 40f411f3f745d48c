"""The project in numbers, and all tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration

if TYPE_CHECKING:
    import pandas


def sentence_of_totals(frame: pandas.DataFrame) -> str:
    """The numbers."""
    row = frame.iloc[0]
    done = f"{row['completed']:,} of {counted(row['tasks'], 'task')} completed in {counted(row['attempts'], 'attempt')}"
    return f"{done} by {counted(row['agents'], 'agent')}; {counted(row['worktrees_integrated'], 'worktree')} merged."


def sentence_of_tasks(frame: pandas.DataFrame) -> str:
    """How many, how many completed, and how long they took."""
    done = frame[frame["status"] == "completed"]
    text = f"{len(done):,} of {counted(len(frame), 'task')} completed"
    return f"{text}, after {duration(done['duration_s'].median())} of work on median." if len(done) else f"{text}."


TOTALS = Standard("totals", "the project in numbers", "There is nothing yet.", sentence_of_totals)
TASKS = Standard("tasks", "every task, how long it waited and took", "There are no tasks yet.", sentence_of_tasks)
