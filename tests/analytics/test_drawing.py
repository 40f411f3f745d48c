"""Pictures of any query: the types of the columns, or the user, decide which chart is drawn."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pandas
import vl_convert

from tests.given import refused
from workbench.analytics.answer import QueryAnswer
from workbench.analytics.reports import charts, png
from workbench.analytics.reports.charts import MOST_MARKS, MOST_ROWS
from workbench.analytics.reports.drawing import Drawing, draw
from workbench.analytics.reports.report import Report
from workbench.analytics.run_report.charts import parallel_coordinates, series_svg, svg

DAYS = pandas.date_range("2026-01-01", periods=4, tz="UTC")
FRAME = pandas.DataFrame(
    {
        "persona": ["tester", "writer", "tester", None],
        "day": DAYS,
        "tasks": [3, 1, 2, 5],
        "cost.usd": [0.5, 0.1, None, 0.2],
        "tags": [["a"], [], ["b"], []],
        "is_late": [True, False, True, False],
    }
)


def spec(frame: pandas.DataFrame, *words: str) -> dict[str, Any]:
    """The specification of a picture."""
    made = draw(frame, Drawing.of(words))
    assert made.chart is not None
    found: dict[str, Any] = made.chart.to_dict()
    return found


def titles(found: dict[str, Any]) -> dict[str, Any]:
    """The fields of the axes, and the mark."""
    axes = {name: found["encoding"][name].get("title") for name in ("x", "y")}
    mark = found["mark"]
    return axes | {"mark": mark if isinstance(mark, str) else mark["type"]}


def test_a_chart_follows_the_types_of_the_columns_unless_it_is_specified() -> None:
    for columns, mark, x, y in (
        (["persona", "day", "tasks"], "line", "day", "tasks"),
        (["day"], "line", "day", "rows"),
        (["persona", "tasks"], "bar", "tasks", None),
        (["is_late"], "bar", "rows", None),
        (["tasks", "cost.usd"], "point", "tasks", "cost.usd"),
        (["tasks", "tags"], "bar", "tasks", "rows"),
    ):
        assert titles(spec(FRAME[columns])) == {"mark": mark, "x": x, "y": y}
    assert titles(spec(FRAME, "area", "day", "cost.usd")) == {"mark": "area", "x": "day", "y": "cost.usd"}
    coloured = spec(FRAME, "point", "tasks", "cost.usd", "persona")
    assert coloured["encoding"]["color"]["type"] == "nominal"
    assert titles(spec(FRAME, "line")) == {"mark": "line", "x": "day", "y": "tasks"}


def test_rows_of_one_name_are_one_bar_and_a_missing_name_is_labelled() -> None:
    specification = spec(FRAME, "bar", "persona", "tasks")
    assert {row["x"]: row["y"] for row in specification["data"]["values"]} == {"tester": 5, "writer": 1, "none": 5}


def test_a_large_picture_is_cut_with_a_word_about_it() -> None:
    many = pandas.DataFrame({"n": range(MOST_MARKS + 1), "m": range(MOST_MARKS + 1)})
    specification = spec(many)
    assert len(specification["data"]["values"]) == MOST_MARKS
    assert specification["title"]["text"] == "The 2,000 of 2,001 rows that come first; the report's `frame` has all."
    names = pandas.DataFrame({"name": [f"n{n}" for n in range(MOST_ROWS + 1)], "n": 1})
    assert spec(names)["title"]["text"].startswith("The 60 of 61 names that come first;")


def test_an_unknown_chart_or_column_is_refused_and_an_empty_frame_has_no_picture() -> None:
    for words, message in (
        (("pie",), "There is no chart 'pie'. There are bar, line, area, point."),
        (("line", "dai"), "The query has no column 'dai'. Did you mean day?"),
        (("line", "a", "b", "c", "d"), "A chart has a mark and at most three columns: x, y and color."),
    ):
        assert refused("UNKNOWN_CHART", spec, FRAME, *words).message == message
    for frame in (FRAME[:0], FRAME[["tags"]]):
        refused("NO_PICTURE", draw, frame, Drawing())


def test_an_answer_is_a_dataframe_that_draws_itself(tmp_path: Path) -> None:
    answer = QueryAnswer(FRAME)
    made = answer.chart("bar", "persona", "tasks")
    assert isinstance(made, Report)
    assert {type(answer.head(2)), type(answer[answer["tasks"] > 1])} == {pandas.DataFrame}
    assert answer.equals(FRAME)
    shown = made._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html", "image/png"}
    for suffix in ("html", "svg", "png"):
        assert made.save(tmp_path / f"picture.{suffix}").stat().st_size > 0
    refused("UNKNOWN_FORMAT", made.save, tmp_path / "picture.exe")


def test_a_picture_is_packed_without_a_change_to_its_pixels() -> None:
    loose = vl_convert.vegalite_to_png(json.dumps(spec(FRAME.dropna())), scale=2)
    tight = png.packed(loose)
    assert len(tight) < len(loose) / 2
    assert png.packed(tight) == tight
    assert pixels(tight) == pixels(loose)


def pixels(picture: bytes) -> bytes:
    """The pixels that `vl_convert` draws from an SVG with this image."""
    source = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
    image = f'<image width="300" height="200" href="{source}"/>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200">{image}</svg>'
    return bytes(vl_convert.svg_to_png(svg))


def test_several_rows_of_each_name_are_lines_over_the_first_number() -> None:
    losses = pandas.DataFrame({"step": [0, 1, 0, 1], "loss": [1.0, 0.5, 1.0, 0.7], "run": ["a", "a", "b", "b"]})
    assert titles(specification := spec(losses)) == {"mark": "line", "x": "step", "y": "loss"}
    assert specification["encoding"]["color"]["scale"]["domain"] == ["a", "b"]
    assert titles(spec(losses, "point"))["mark"] == "point"
    assert titles(spec(losses, "bar"))["mark"] == "bar"
    once = losses.drop_duplicates("run")  # a row for each name: bars
    assert titles(spec(once)) == {"mark": "bar", "x": "step", "y": None}


def test_the_title_of_a_legend_has_the_colour_of_the_page() -> None:
    chart = draw(FRAME, Drawing.of(("point", "tasks", "cost.usd", "tasks"))).chart
    assert chart is not None
    assert charts.on_any_background(chart)["config"]["legend"]["titleColor"] == charts.TEXT


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


def test_a_run_that_failed_or_diverged_takes_no_axis_away() -> None:
    runs = [{"id": number, "name": f"r{number}"} for number in (1, 2, 3)]
    rows = [
        {"section": "parameters", "name": "lr", "values": [0.1, 0.2, 0.3]},
        {"section": "metrics", "name": "loss", "values": [0.5, "NaN", 0.25]},
        {"section": "metrics", "name": "rate", "values": [1, 2, None]},
    ]
    chart = parallel_coordinates({"runs": runs, "rows": rows})
    assert chart is not None
    points = chart.to_dict()["data"]["values"]
    assert [(point["run"], point["value"]) for point in points if point["axis"] == "loss\n0.25 to 0.5"] == [
        ("1 r1", 0.5),
        ("3 r3", 0.25),
    ]
    assert len(points) == 7
