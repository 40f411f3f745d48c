"""The page: one HTML file with everything inside. All that a notebook wrote is escaped or shown as a picture."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from workbench.analytics.run_report.charts import parallel_coordinates, series_svg, svg
from workbench.present.inert import as_html
from workbench.present.tables import Table, TablePage

STYLE = Path(__file__).with_suffix(".css")
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")
PICTURE_BYTES = 1_000_000
"""The largest picture that is put into the page."""
ALL_PICTURES_BYTES = 10_000_000
CHARTS = 40
"""The most charts of metrics."""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""A browser loads nothing from elsewhere, and runs no script."""

Run = Mapping[str, Any]


def page(
    project: Path,
    shown: Sequence[tuple[Run, TablePage]],
    series: Mapping[int, Sequence[Mapping[str, Any]]],
    comparison: Mapping[str, Any],
    differences: Table,
) -> str:
    """The page about runs.

    Args:
        project: where the paths of artifacts begin.
        shown: each run, as `get_run` has it, and the page that shows it.
        series: the series of each run, by its id.
        comparison: of all the runs; `differences` shows it.
    """
    runs = [run for run, _ in shown]
    title = ", ".join(f"Run {run['id']}: {run['name']}" for run in runs)
    parts = [f"<h1>{as_html(title)}</h1>"]
    if len(runs) > 1:
        parts += ["<h2>Differences</h2>", differences.html(), coordinates_figure(comparison)]
    parts += _charts(runs, series)
    room = ALL_PICTURES_BYTES
    for run, tables in shown:
        parts += ["<section>", tables.html()]
        for file in run["files"]:
            picture, size = _picture(project, file, room)
            room -= size
            parts.append(picture)
        parts.append("</section>")
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{as_html(title)}</title><style>{STYLE.read_text('utf-8')}</style>"
    )
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _charts(runs: Sequence[Run], series: Mapping[int, Sequence[Mapping[str, Any]]]) -> list[str]:
    """A chart of each metric that has a series, and a word about those that are left out."""
    names = dict.fromkeys(each["name"] for run in runs for each in series[run["id"]] if len(each["points"]) > 1)
    parts = ["<h2>Metrics</h2>"] if names else []
    for name in list(names)[:CHARTS]:
        lines = {
            f"{run['id']} {run['name']}": [
                point for each in series[run["id"]] if each["name"] == name for point in each["points"]
            ]
            for run in runs
        }
        if (drawn := series_svg(lines)) is not None:
            parts.append(_figure(name, "image/svg+xml", drawn.encode()))
    if len(names) > CHARTS:
        parts.append(f"<p>{len(names) - CHARTS} more metrics have no chart here.</p>")
    return parts


def coordinates_figure(comparison: Mapping[str, Any]) -> str:
    """Parallel coordinates as HTML; empty if the runs differ in fewer than two numbers."""
    chart = parallel_coordinates(comparison)
    return "" if chart is None else _figure("Parallel coordinates", "image/svg+xml", svg(chart).encode())


def _picture(project: Path, file: Mapping[str, Any], room: int) -> tuple[str, int]:
    """A picture among the artifacts, or why it is not shown; and its size. Empty for other files."""
    if file["media_type"] not in PICTURES:
        return "", 0
    path = (project / file["path"]).resolve()
    try:
        too_large = not path.is_relative_to(project) or path.stat().st_size > min(PICTURE_BYTES, room)
        content = b"" if too_large else path.read_bytes()
    except OSError as error:
        return f"<p>{as_html(file['name'])} cannot be read: {as_html(str(error.strerror))}.</p>", 0
    if too_large:
        return f"<p>{as_html(file['name'])} is too large for this page: {as_html(file['path'])}.</p>", 0
    is_same = sha256(content).hexdigest() == file["sha256"]
    caption = file["name"] if is_same else f"{file['name']} (changed since the run)"
    return _figure(caption, file["media_type"], content), len(content)


def _figure(caption: str, media_type: str, content: bytes) -> str:
    """A picture inside the page; as an image it runs no script, even if it is SVG."""
    source = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    return f'<figure><figcaption>{as_html(caption)}</figcaption><img alt="{as_html(caption)}" src="{source}"></figure>'
