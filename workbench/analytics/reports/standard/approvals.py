"""How long questions wait for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration, enumerated, was

if TYPE_CHECKING:
    import altair
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """How many a person decided, how long they waited; how many others did, and how many wait."""
    pending = frame["pending"].sum()
    persons = frame[frame["by_person"]]
    decided = persons["asked"].sum()
    rest = frame["asked"].sum() - decided - pending
    by = enumerated(sorted(set(frame.loc[~frame["by_person"] & (frame["pending"] == 0), "decided_by"])))
    others = f"{counted(rest, 'question')} {was(rest)} decided without one ({by}); " if rest else ""
    still = f"{counted(pending, 'question')} still wait{'s' if pending == 1 else ''}" if pending else "none waits"
    if not decided:
        return f"No question was decided by a person; {others}{still}."
    longest = persons.iloc[int(persons["longest_s"].argmax())]
    mean = duration(persons["total_s"].sum() / decided)
    text = f"{counted(decided, 'question')} {was(decided)} decided by a person after {mean} on average"
    most = f"{duration(longest['longest_s'])} at most ({longest['kind']}, by {longest['decided_by']})"
    return f"{text} and {most}; {others}{still}."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """How long questions of each kind waited, by who decided."""
    rows, unit = charts.in_unit(frame[frame["by_person"] | (frame["pending"] > 0)].fillna({"total_s": 0}), "total_s")
    return charts.bars(
        rows,
        "kind",
        "total_s",
        f"{unit} that questions waited together",
        what="kinds",
        which="that waited longest",
        colour="decided_by",
    )


APPROVALS = Standard(
    "approvals",
    "how long questions waited for a person, and for whom",
    "Nothing has been asked yet.",
    sentence,
    picture,
)
