"""Leases that were lost, and attempts after the first, by agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, enumerated, was

if TYPE_CHECKING:
    import altair
    import pandas

COLOURS = {"completed": charts.GREEN, "failed": charts.RED, "lease lost": charts.ORANGE, "other": charts.GREY}
"""Others were released, cancelled, or run."""


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
    other_ends = frame["made"] - frame["completed"] - frame["failed"] - frame["leases_lost"]
    renamed = frame.rename(columns={"leases_lost": "lease lost"}).assign(other=other_ends)
    outcomes = renamed.melt("agent", list(COLOURS), "outcome", "attempts")
    rows = outcomes[outcomes["attempts"] > 0].sort_values(
        "agent", key=lambda agents: agents.map(_places(frame)), kind="stable"
    )
    return charts.bars(
        rows,
        "agent",
        "attempts",
        "attempts",
        what="agents",
        which="that lost most leases",
        whole=True,
        colour="outcome",
        known=COLOURS,
    )


def _places(frame: pandas.DataFrame) -> dict[str, int]:
    """The place of each agent in the order of the rows."""
    return {agent: place for place, agent in enumerate(frame["agent"])}


LEASES = Standard(
    "leases", "lost leases and repeated attempts, by agent", "No task has been claimed yet.", sentence, picture
)
