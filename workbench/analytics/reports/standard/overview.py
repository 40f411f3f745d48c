"""The project in numbers, and all tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration, others

if TYPE_CHECKING:
    import pandas


def sentence_of_totals(frame: pandas.DataFrame) -> str:
    """The numbers."""
    row = frame.iloc[0]
    left = others(row)
    done = f"{row['completed']:,} of {counted(row['tasks'], 'task')} completed{f', {left}' if left else ''}"
    made = f"{counted(row['attempts'], 'attempt')} by {row['at_work']:,} of {counted(row['agents'], 'agent')}"
    return f"{done}; {made}; {counted(row['worktrees_integrated'], 'worktree')} merged."


def sentence_of_tasks(frame: pandas.DataFrame) -> str:
    """How many, how many completed, and how long they took."""
    done = frame[frame["status"] == "completed"]
    is_open = ~frame["status"].isin(("completed", "failed", "cancelled"))
    counts = {"open": int(is_open.sum())} | {
        name: int((frame["status"] == name).sum()) for name in ("failed", "cancelled")
    }
    left = others(counts)
    work = f" after {duration(done['duration_s'].median())} of work on median" if len(done) else ""
    return f"{len(done):,} of {counted(len(frame), 'task')} completed{work}{f', {left}' if left else ''}."


TOTALS = Standard("totals", "the project in numbers", "There is nothing yet.", sentence_of_totals)
TASKS = Standard("tasks", "every task, how long it waited and took", "There are no tasks yet.", sentence_of_tasks)
