"""Calls of tools: of each, and by where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration

if TYPE_CHECKING:
    import altair
    import pandas

EMPTY = "No tool has been called yet."
UNKNOWN = "unknown"
"""The source of calls that named no tool."""
SLOWEST = "that are slowest"


def sentence(frame: pandas.DataFrame) -> str:
    """How many calls, failures, and which is slowest."""
    return _about(frame, "tool", frame["tool"])


def sentence_of_sources(frame: pandas.DataFrame) -> str:
    """The same of sources and servers."""
    return _about(frame, "source", _names(frame))


def _about(frame: pandas.DataFrame, noun: str, names: pandas.Series) -> str:
    calls, failed = frame["calls"].sum(), frame["failed"].sum()
    known = frame["source"] != UNKNOWN
    text = f"{counted(calls, 'call')} of {counted(int(known.sum()), noun)}, {int(failed):,} failed"
    text += "".join(
        f", {frame[name].sum():,} {word}"
        for name, word in (("refused", "refused"), ("ended_early", "stopped"), ("open", "not ended"))
        if frame[name].sum()
    )
    if nothing := int(frame["calls"][~known].sum()):
        text += f", {nothing:,} of names that no tool has"
    ran = frame["median_ms"].dropna()
    if ran.empty:
        return f"{text}; none has run."
    slowest = int(ran.argmax())
    name, median = names.loc[ran.index].iloc[slowest], ran.iloc[slowest]
    return f"{text}; {name} is slowest ({duration(median / 1e3)} on median)."


def _names(frame: pandas.DataFrame) -> pandas.Series:
    return frame["server"].where(frame["server"].notna(), frame["source"])


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """The median duration of each tool, the slowest first."""
    slowest = frame.dropna(subset="median_ms").sort_values("median_ms", ascending=False, kind="stable")
    return charts.bars(
        slowest, "tool", "median_ms", "milliseconds on median", what="tools", which=SLOWEST, colour="source"
    )


def picture_of_sources(frame: pandas.DataFrame) -> altair.Chart:
    """The median duration of each source."""
    sources = frame.assign(name=_names(frame)).dropna(subset="median_ms").sort_values("median_ms", ascending=False)
    return charts.bars(
        sources, "name", "median_ms", "milliseconds on median", what="servers", which=SLOWEST, colour="source"
    )


TOOLS = Standard("tools", "calls, failures and durations of each tool", EMPTY, sentence, picture)
TOOL_SOURCES = Standard(
    "tool_sources", "calls of tools by source and server", EMPTY, sentence_of_sources, picture_of_sources
)
