"""What the pictures of reports have in common: size, fonts, colours, and how many rows they show.

A picture is drawn with dark text on white; `on_any_background` makes it follow the page that it is in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.analytics.reports.words import unit_for

if TYPE_CHECKING:
    import altair
    import pandas

WIDTH = 640
MOST_ROWS = 60
"""The most rows of bars in a picture. Sorting by a list of very many names would exceed the renderer's stack."""
MOST_MARKS = 2_000
LETTER = 8
"""Pixels of a letter in the widest of the usual fonts."""
LETTERS = 40
"""The letters of a name for which there is space."""
OTHERS = "others"
TEXT = "currentColor"
BLUE, GREEN, ORANGE, RED, GREY, PURPLE, TEAL = (
    *("#4a7ab5", "#4c8c5c", "#d08a2e", "#c0504d", "#8a8f98", "#8064a2", "#3a9a9a"),
)
PALETTE = [BLUE, ORANGE, GREEN, PURPLE, TEAL, RED, GREY]
"""Colours that differ, and are readable on white and on black."""


def rows_of(frame: pandas.DataFrame) -> Any:
    """The rows of a frame, as data of a chart."""
    import altair as alt

    return alt.Data(values=json.loads(frame.to_json(orient="records", date_format="iso")))


def note_of(shown: int, of: int, what: str, which: str) -> str:
    """The words above a picture that leaves something out; empty if it does not."""
    return f"The {shown:,} of {of:,} {what} {which}; the report's `frame` has all." if of > shown else ""


def in_unit(frame: pandas.DataFrame, *columns: str) -> tuple[pandas.DataFrame, str]:
    """The frame with these columns, which are seconds, in the unit that fits the longest of them; and its name."""
    name, size = unit_for(float(frame[list(columns)].max().max()))
    return frame.assign(**{column: frame[column] / size for column in columns}), name


def first(frame: pandas.DataFrame, column: str, what: str, which: str) -> tuple[pandas.DataFrame, list[str], str]:
    """The rows with the first `MOST_ROWS` values of a column, these values, and the words about what is left out."""
    names = list(dict.fromkeys(frame[column]))
    kept = names[:MOST_ROWS]
    return frame[frame[column].isin(kept)], kept, note_of(len(kept), len(names), what, which)


def grouped(frame: pandas.DataFrame, column: str) -> pandas.DataFrame:
    """The frame with at most as many values in a column as there are colours: all after the first are `OTHERS`."""
    names = list(dict.fromkeys(frame[column]))
    if len(names) <= len(PALETTE):
        return frame
    return frame.assign(**{column: frame[column].where(frame[column].isin(names[: len(PALETTE) - 1]), OTHERS)})


def scale_of(known: Mapping[str, str] | None, present: list[str]) -> Any:
    """The colours of values: the known ones of those that are present, else those of the palette."""
    import altair as alt

    domain = [name for name in known if name in present] if known else present[: len(PALETTE)]
    return alt.Scale(domain=domain, range=[known[name] for name in domain] if known else PALETTE[: len(domain)])


def colours(column: str, known: Mapping[str, str] | None, present: list[str]) -> Any:
    """Colours for the values of a column, with a legend above; see `scale_of`."""
    import altair as alt

    return alt.Color(f"{column}:N", title=None, scale=scale_of(known, present), legend=alt.Legend(orient="top"))


def axis_of_names(column: str, order: list[str]) -> Any:
    """A vertical axis of names in an order of at most `MOST_ROWS`."""
    import altair as alt

    space = LETTER * min(
        LETTERS, max(map(len, order), default=0)
    )  # pages may draw it in a wider font than measured here
    axis = alt.Axis(labelLimit=280, minExtent=space, ticks=False, domain=False)
    return alt.Y(f"{column}:N", sort=order, scale=alt.Scale(domain=order), title=None, axis=axis)


def axis_of_numbers(column: str, title: str, *, zero: bool = True, binned: bool = False, whole: bool = False) -> Any:
    """A horizontal axis of numbers whose labels do not overlap.

    Args:
        zero: whether it begins at zero.
        whole: whether only whole numbers are labelled, as for what is counted.
        binned: the numbers are where intervals begin, on which vertical bars stand.
    """
    import altair as alt

    counts = {"tickMinStep": 1, "format": ",d"} if whole else {}
    axis = alt.Axis(labelOverlap="greedy", labelSeparation=10, **counts)
    more = {"bin": "binned"} if binned else {}
    return alt.X(f"{column}:Q", title=title, axis=axis, scale=alt.Scale(zero=zero), **more)


def axis_of_counts(column: str, title: str, highest: int) -> Any:
    """A vertical axis of whole numbers."""
    import altair as alt

    magnitude = 10 ** max(0, len(str(highest)) - 2)
    step = next(digit * magnitude for digit in (1, 2, 5, 10, 20) if digit * magnitude * 8 >= highest)
    return alt.Y(f"{column}:Q", title=title, axis=alt.Axis(values=list(range(0, highest + step, step)), format="d"))


def bars(
    frame: pandas.DataFrame,
    names: str,
    numbers: str,
    title: str,
    *,
    what: str,
    which: str,
    whole: bool = False,
    colour: str | None = None,
    known: Mapping[str, str] | None = None,
) -> altair.Chart:
    """A bar for each row, the first `MOST_ROWS` of them; with `colour`, stacked by that column.

    Args:
        known: the colours of the values of the column `colour`; by default those of the palette.
        what, which: for the words about what is left out: the 60 of 80 agents with most attempts.
        whole: whether the numbers are counts.
    """
    import altair as alt

    frame, order, note = first(frame, names, what, which)
    if colour and not known:
        frame = grouped(frame, colour)
    chart = alt.Chart(rows_of(frame), width=WIDTH, height=alt.Step(26)).mark_bar(height=15, cornerRadius=3)
    shade = colours(colour, known, list(dict.fromkeys(frame[colour]))) if colour else alt.value(BLUE)
    return finished(
        chart.encode(x=axis_of_numbers(numbers, title, whole=whole), y=axis_of_names(names, order), color=shade), note
    )


def finished(chart: Any, note: str = "") -> altair.Chart:
    """A chart with the common fonts and grid, and words above it."""
    import altair as alt

    styled: altair.Chart = (
        chart.properties(title=alt.Title(note, anchor="start", fontSize=12, fontWeight="normal"), background="white")
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", gridColor="#e8e8e8")
        .configure_legend(labelFontSize=12)
    )
    return styled


def on_any_background(chart: altair.Chart) -> dict[str, Any]:
    """The chart's specification, drawn with the colour of the text around it on whatever is behind it."""
    spec: dict[str, Any] = chart.to_dict()
    axis = {"labelColor": TEXT, "titleColor": TEXT, "gridColor": TEXT, "gridOpacity": 0.15}
    axis |= {"domainColor": TEXT, "tickColor": TEXT, "domainOpacity": 0.4, "tickOpacity": 0.4}
    parts = {"axis": axis, "legend": {"labelColor": TEXT, "titleColor": TEXT}, "title": {"color": TEXT}}
    config = {**spec["config"], **{part: spec["config"].get(part, {}) | more for part, more in parts.items()}}
    return {**spec, "background": "transparent", "config": config}
