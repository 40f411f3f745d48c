"""Standard reports: a DataFrame and, for some, a chart."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import BadInput

if TYPE_CHECKING:
    import altair
    import duckdb
    import pandas

QUERIES = Path(__file__).parent / "queries"

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

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        if self.chart is None:
            return {"text/plain": repr(self.frame), "text/html": self.frame.to_html()}
        import base64

        import vl_convert

        png = vl_convert.vegalite_to_png(json.dumps(self.chart.to_dict()), scale=2)
        return {"text/plain": f"<report {self.name}>", "image/png": base64.b64encode(png).decode()}


def report(name: str, ask: Ask) -> Report:
    """Make the report with one of `names()`.

    Raises:
        BadInput: ``UNKNOWN_REPORT``.
    """
    path = QUERIES / f"{name}.sql"
    if name not in names():
        raise BadInput("UNKNOWN_REPORT", f"There is no report {name!r}. Available: {', '.join(names())}.")
    frame = ask(path.read_text("utf-8")).df()
    chart = _gantt(frame) if name == "gantt" and len(frame) else None
    return Report(name, frame, chart)


def names() -> list[str]:
    """The names of the standard reports."""
    return sorted(path.stem for path in QUERIES.glob("*.sql"))


OUTCOMES = {
    "completed": "#4c8c5c",
    "failed": "#c0504d",
    "expired": "#d08a2e",
    "released": "#8a8f98",
    "cancelled": "#8a8f98",
    "running": "#4a7ab5",
}


def _gantt(frame: pandas.DataFrame) -> altair.Chart:
    """Each attempt as a bar from its start to its end, coloured by its outcome."""
    import altair as alt

    rows = json.loads(frame.to_json(orient="records"))
    order = list(dict.fromkeys(row["task"] for row in rows))
    present = [outcome for outcome in OUTCOMES if outcome in set(frame["outcome"])]
    scale = alt.Scale(domain=present, range=[OUTCOMES[outcome] for outcome in present])
    colour = alt.Color("outcome:N", title=None, scale=scale, legend=alt.Legend(orient="top"))
    chart: alt.Chart = (
        alt.Chart(alt.Data(values=rows), width=640, height=alt.Step(26), background="white")
        .mark_bar(cornerRadius=3, height=15, strokeWidth=2)
        .encode(
            x=alt.X("start:Q", title="seconds since the first claim"),
            x2="end:Q",
            y=alt.Y("task:N", sort=order, title=None, axis=alt.Axis(labelLimit=280, ticks=False, domain=False)),
            color=colour,
            stroke=alt.Stroke("outcome:N", scale=scale, legend=None),
            detail="attempt:Q",
        )
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=12, titleFontSize=12, titleFontWeight="normal", gridColor="#e8e8e8")
        .configure_legend(labelFontSize=12)
    )
    return chart
