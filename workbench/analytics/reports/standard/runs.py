"""Runs of experiments side by side: how long they took, their tasks, parameters and last metrics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from workbench.analytics.reports import charts
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.words import counted, duration

if TYPE_CHECKING:
    import altair
    import pandas

COLOURS = {
    "completed": charts.GREEN,
    "running": charts.BLUE,
    "failed": charts.RED,
    "cancelled": charts.GREY,
    "lost": charts.PURPLE,
}


def spread(frame: pandas.DataFrame) -> pandas.DataFrame:
    """A column for each parameter, such as `parameters.lr`, and for each metric, instead of the JSON of all."""
    import pandas

    spread_frame = frame.drop(columns=["metrics", "parameters"])
    for column in ("parameters", "metrics"):
        values = [_values(text) for text in frame[column]]
        names = list(dict.fromkeys(name for row in values for name in row))
        wide = {f"{column}.{name}": [row.get(name) for row in values] for name in names}
        spread_frame = pandas.concat([spread_frame, pandas.DataFrame(wide, index=frame.index)], axis=1)
    return spread_frame


def _values(text: Any) -> dict[str, Any]:
    """The values by name; numbers that were written as text are numbers."""
    values = json.loads(text) if isinstance(text, str) else {}
    return {name: _number(value) for name, value in values.items()}


def _number(value: Any) -> Any:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def sentence(frame: pandas.DataFrame) -> str:
    """How many, how they ended, and which took longest."""
    done = frame[frame["state"] == "completed"]
    states = frame.loc[frame["state"] != "completed", "state"].value_counts()
    rest = "".join(f", {number:,} {state}" for state, number in states.items())
    archived = frame["of_archived"].iloc[0]
    text = (
        f"{len(done):,} of {counted(len(frame), 'run')}{f' (and {archived:,} archived)' if archived else ''} completed"
    )
    known = done.dropna(subset="seconds")
    if known.empty:
        return f"{text}{rest}."
    longest = known.iloc[int(known["seconds"].argmax())]
    middle = duration(known["seconds"].median())
    took = f"{longest['compared']} took longest of them: {duration(longest['seconds'])}"
    return f"{text} after {middle} on median{rest}; {took}."


def picture(frame: pandas.DataFrame) -> altair.Chart:
    """How long each took."""
    rows, unit = charts.in_unit(frame, "seconds")
    return charts.bars(
        rows, "compared", "seconds", unit, what="runs", which="that are oldest", colour="state", known=COLOURS
    )


RUNS = Standard(
    "runs",
    "runs side by side: time, tasks, parameters, metrics",
    "There are no runs yet.",
    sentence,
    picture,
    compares="runs",
    arrange=spread,
)
