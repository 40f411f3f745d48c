"""Standard reports: a DataFrame and, for some, a chart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.analytics.results import as_frame
from workbench.errors import BadInput
from workbench.tables import Table

if TYPE_CHECKING:
    import altair
    import duckdb
    import pandas

QUERIES = Path(__file__).parent / "queries"
SCRIPT = Path(__file__).with_suffix(".js")
ROWS = 200
"""The most rows of a frame that a cell shows."""
GANTT_TASKS = 60
"""The most tasks that the Gantt chart shows."""

Ask = Callable[[str], "duckdb.DuckDBPyRelation"]


@dataclass(frozen=True)
class Report:
    """A standard report."""

    name: str
    frame: pandas.DataFrame
    chart: altair.Chart | None = field(default=None, repr=False)

    def save(self, path: Path) -> Path:
        """Save the chart; the suffix chooses the format: .png, .svg or .html.

        Raises:
            BadInput: ``NO_PICTURE``.
        """
        if self.chart is None:
            raise BadInput("NO_PICTURE", f"The report {self.name} has no chart; use its `frame`.")
        self.chart.save(str(path), **({"scale_factor": 2} if path.suffix == ".png" else {}))
        return path

    def table(self) -> Table:
        """The first rows of the frame."""
        known = self.frame.astype(object)
        rows = known.where(known.notna(), None).head(ROWS).to_numpy().tolist()
        more = len(self.frame) - ROWS
        note = f"… and {more:,} more rows; `frame` has all" if more > 0 else ""
        return Table([str(name) for name in self.frame.columns], rows, "No rows.", note=note)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The chart in the colours of the page, and as a PNG where no HTML is shown; or the table."""
        table = self.table()
        if self.chart is None:
            return {"text/plain": table.text(), "text/html": table.html()}
        import base64

        import vl_convert

        png = vl_convert.vegalite_to_png(json.dumps(self.chart.to_dict()), scale=2)
        svg = vl_convert.vegalite_to_svg(json.dumps(_in_colours_of_the_page(self.chart))).encode()
        source, script = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}", SCRIPT.read_text("utf-8")
        image = f'<img src="{source}" alt="Report {self.name}" style="background: white">'
        return {
            "text/plain": table.text(),
            "text/html": f'<div style="overflow-x: auto">{image}<script>{script}</script></div>',
            "image/png": base64.b64encode(png).decode(),
        }


def report(name: str, ask: Ask) -> Report:
    """Make the report with one of `names()`.

    Raises:
        BadInput: ``UNKNOWN_REPORT``.
    """
    path = QUERIES / f"{name}.sql"
    if name not in names():
        raise BadInput("UNKNOWN_REPORT", f"There is no report {name!r}. Available: {', '.join(names())}.")
    frame = as_frame(ask(path.read_text("utf-8")))
    chart = chart_of(frame) if name == "gantt" and len(frame) else None
    return Report(name, frame, chart)


def names() -> list[str]:
    """The names of the standard reports."""
    return sorted(path.stem for path in QUERIES.glob("*.sql"))


TEXT = "currentColor"
OUTCOMES = {
    "completed": "#4c8c5c",
    "failed": "#c0504d",
    "expired": "#d08a2e",
    "released": "#8a8f98",
    "cancelled": "#8a8f98",
    "running": "#4a7ab5",
}


def chart_of(frame: pandas.DataFrame) -> altair.Chart:
    """Each attempt as a bar from its start to its end, coloured by its outcome, for the tasks that began last."""
    import altair as alt

    tasks = list(dict.fromkeys(frame["task"]))
    order = tasks[-GANTT_TASKS:]
    frame = frame[frame["task"].isin(order)]
    rows = json.loads(frame.to_json(orient="records"))
    more = len(tasks) > len(order)
    note = f"The {len(order)} of {len(tasks):,} tasks that began last; the report's `frame` has all." if more else ""
    present = [outcome for outcome in OUTCOMES if outcome in set(frame["outcome"])]
    scale = alt.Scale(domain=present, range=[OUTCOMES[outcome] for outcome in present])
    colour = alt.Color("outcome:N", title=None, scale=scale, legend=alt.Legend(orient="top"))
    chart: alt.Chart = (
        alt.Chart(alt.Data(values=rows), width=640, height=alt.Step(26), background="white")
        .mark_bar(cornerRadius=3, height=15, strokeWidth=2)
        .encode(
            x=alt.X(
                "start_s:Q",
                title="seconds since the first claim",
                scale=alt.Scale(zero=False),
                axis=alt.Axis(labelOverlap="greedy", labelSeparation=10),
            ),
            x2="end_s:Q",
            y=alt.Y("task:N", sort=order, title=None, axis=alt.Axis(labelLimit=280, ticks=False, domain=False)),
            color=colour,
            stroke=alt.Stroke("outcome:N", scale=scale, legend=None),
            detail="attempt:Q",
        )
        .properties(title=alt.Title(note, anchor="start", fontSize=12, fontWeight="normal"))
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", gridColor="#e8e8e8")
        .configure_legend(labelFontSize=12)
    )
    return chart


def _in_colours_of_the_page(chart: altair.Chart) -> dict[str, Any]:
    """The chart's specification, drawn with the colour of the text around it on whatever is behind it."""
    spec: dict[str, Any] = chart.to_dict()
    axis = {"labelColor": TEXT, "titleColor": TEXT, "gridColor": TEXT, "gridOpacity": 0.15}
    colours = {"axis": axis, "legend": {"labelColor": TEXT}, "title": {"color": TEXT}}
    config = {**spec["config"], **{part: spec["config"].get(part, {}) | more for part, more in colours.items()}}
    return {**spec, "background": "transparent", "config": config}
