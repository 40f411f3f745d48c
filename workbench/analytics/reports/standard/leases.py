"""Leases that were lost, and attempts after the first, by agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, enumerated, was

if TYPE_CHECKING:
    import altair
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """How many leases were lost, and by whom."""
    made, lost, later = (frame[name].sum() for name in ("made", "leases_lost", "later_attempts"))
    by = f", by {enumerated(frame.loc[frame['leases_lost'] > 0, 'agent'].tolist())}" if lost else ""
    first = f"{counted(lost, 'lease')} {was(lost)} lost in {counted(made, 'attempt')}{by}"
    return (
        f"{first}; {counted(later, 'attempt')} {was(later)} not the first at {'its' if later == 1 else 'their'} task."
    )


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """Attempts of each agent, by outcome."""
    kinds = {"completed": "completed", "failed": "failed", "leases_lost": "lease lost"}
    shown = frame.rename(columns=kinds).melt("agent", list(kinds.values()), "outcome", "attempts")
    return charts.bars(shown[shown["attempts"] > 0], "agent", "attempts", "attempts", what="agents", colour="outcome")


LEASES = Standard(
    "leases", "lost leases and repeated attempts, by agent", "No task has been claimed yet.", sentence, picture
)
