"""How long questions wait for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration, was

if TYPE_CHECKING:
    import altair
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """How many were decided, how long they waited, and how many wait."""
    pending = frame["pending"].sum()
    decided = frame["asked"].sum() - pending
    still = f"{counted(pending, 'question')} still wait{'s' if pending == 1 else ''}" if pending else "none waits"
    if not decided:
        return f"No question was decided; {still}."
    longest = frame.iloc[int(frame["longest_s"].argmax())]
    mean = duration(frame["total_s"].sum() / decided)
    text = f"{counted(decided, 'question')} {was(decided)} decided after {mean} on average"
    return (
        f"{text} and {duration(longest['longest_s'])} at most ({longest['kind']}, by {longest['decided_by']}); {still}."
    )


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """How long questions of each kind waited, by who decided."""
    shown, unit = charts.in_unit(frame.fillna({"total_s": 0}), "total_s")
    return charts.bars(
        shown,
        "kind",
        "total_s",
        f"{unit} that questions waited together",
        what="kinds",
        which="that waited longest",
        colour="decided_by",
    )


APPROVALS = Standard(
    "approvals", "how long questions waited for a decision, and whose", "Nothing has been asked yet.", sentence, picture
)
