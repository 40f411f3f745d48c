"""Charts of runs as SVG: series of metrics, and parallel coordinates of what differs. A run has one colour in all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.rules.runs.values import NOT_FINITE

if TYPE_CHECKING:
    import altair

AXES = 12
"""The most axes of parallel coordinates."""
NUMERIC = ("parameters", "metrics")


def series_svg(lines: Mapping[str, Sequence[Sequence[Any]]]) -> str | None:
    """The finite values of one metric by step, a line for each run that has some; None if none has.

    Args:
        lines: steps and values of all runs of the page, in its order.
    """
    import altair as alt

    rows = [
        {"run": run, "step": step, "value": value}
        for run, points in lines.items()
        for step, value in points
        if isinstance(value, int | float)
    ]
    if not rows:
        return None
    chart = (
        alt.Chart(alt.Data(values=rows), width=560, height=200)
        .mark_line(point=len(rows) <= 60)
        .encode(
            x=alt.X("step:Q", axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
            color=_colour(list(lines), list(dict.fromkeys(str(row["run"]) for row in rows))),
        )
    )
    return svg(chart)


def parallel_coordinates(comparison: Mapping[str, Any]) -> altair.Chart | None:
    """Numbers in which runs differ, an axis each from the lowest to the highest; None if there are fewer than two.

    A run without a number, or with one that is not finite, has no point on that axis.
    """
    import altair as alt

    rows = [row for row in comparison["rows"] if row["section"] in NUMERIC and _is_numeric(row["values"])][:AXES]
    if len(rows) < 2 or len(comparison["runs"]) < 2:
        return None
    points = []
    names = [f"{run['id']} {run['name']}" for run in comparison["runs"]]
    for row in rows:
        present = [value for value in row["values"] if _is_number(value)]
        low, high = min(present), max(present)
        title = f"{row['name']}\n{low:.4g} to {high:.4g}"
        for name, value in zip(names, row["values"], strict=True):
            if not _is_number(value):
                continue
            place = (value - low) / (high - low) if high > low else 0.5
            points.append({"run": name, "axis": title, "place": place, "value": value})
    axes = list(dict.fromkeys(each["axis"] for each in points))
    return (
        alt.Chart(alt.Data(values=points), width=max(320, 110 * len(axes)), height=240)
        .mark_line(point=True)
        .encode(
            x=alt.X("axis:N", sort=axes, title=None, axis=_axis_of_titles()),
            y=alt.Y("place:Q", axis=None, scale=alt.Scale(domain=[0, 1])),
            color=_colour(names, names),
            detail="run:N",
        )
    )


def _axis_of_titles() -> altair.Axis:
    """An axis whose names have two lines, which begin within the picture."""
    import altair as alt

    return alt.Axis(labelAngle=0, labelLimit=105, labelExpr="split(datum.label, '\\n')", grid=True)


def _colour(runs: Sequence[str], shown: Sequence[str]) -> altair.Color:
    """The colours of runs, the same for the same list, and a legend of those that a chart shows."""
    import altair as alt

    legend = alt.Legend(values=list(shown)) if len(runs) > 1 else None
    return alt.Color("run:N", title=None, scale=alt.Scale(domain=list(runs)), legend=legend)


def svg(chart: altair.Chart) -> str:
    """A chart as SVG."""
    import vl_convert

    drawing: str = vl_convert.vegalite_to_svg(json.dumps({**chart.to_dict(), "background": "white"}))
    return drawing


def _is_numeric(values: Sequence[Any]) -> bool:
    """Whether values are numbers but for those that are missing or not finite, which are recorded as texts."""
    return any(map(_is_number, values)) and all(value in (None, *NOT_FINITE) or _is_number(value) for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
