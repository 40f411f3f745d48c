"""What failed, by kind and class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted

if TYPE_CHECKING:
    import altair
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """How many, of how many causes, and the most frequent."""
    most = frame.iloc[0]
    text = f"{counted(frame['failures'].sum(), 'failure')} of {counted(len(frame), 'cause')}"
    return f"{text}; the most frequent is {most['class']} ({most['kind']}, {counted(most['failures'], 'time')})."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """A bar for each class."""
    named = frame.assign(cause=frame["kind"] + ": " + frame["class"])
    return charts.bars(
        named, "cause", "failures", "failures", what="causes", which="that are most frequent", whole=True, colour="kind"
    )


FAILURES = Standard("failures", "what failed, by kind and class of the cause", "Nothing has failed.", sentence, picture)
