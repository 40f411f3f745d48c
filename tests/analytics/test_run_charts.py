"""The charts of a report about several runs: a run has the same colour in each."""

from __future__ import annotations

import re

from workbench.analytics.run_report.charts import parallel_coordinates, series_svg, svg

RUNS = ("3 three", "6 six", "13 thirteen")
LINE = re.compile(r'aria-roledescription="line mark"[^>]*stroke="(#[0-9a-f]{6})"')


def test_a_run_has_one_colour_in_all_charts() -> None:
    points = {run: [[0, index], [1, index + 1]] for index, run in enumerate(RUNS)}
    everywhere = colours(series_svg(points))
    assert len({*everywhere}) == 3
    assert colours(series_svg({**points, "3 three": []})) == everywhere[1:]
    runs = [{"id": int(number), "name": name} for number, name in (run.split() for run in RUNS)]
    rows = [{"section": "metrics", "name": name, "values": [1, 2, 3]} for name in ("loss", "accuracy")]
    chart = parallel_coordinates({"runs": runs, "rows": rows})
    assert chart is not None
    assert chart.to_dict()["encoding"]["color"]["scale"]["domain"] == list(RUNS)
    assert {*colours(svg(chart))} == {*everywhere}


def colours(drawn: str | None) -> list[str]:
    assert drawn is not None
    return LINE.findall(drawn)
