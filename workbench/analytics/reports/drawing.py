"""A picture of the rows of any query: the types of its columns decide how they are drawn, unless one says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from workbench.analytics.reports import charts
from workbench.analytics.reports.report import Report
from workbench.errors import BadInput
from workbench.rules.naming import similar

if TYPE_CHECKING:
    import altair
    import pandas

Mark = Literal["bar", "line", "area", "point"]
MARKS: tuple[Mark, ...] = get_args(Mark)
HEIGHT = 260
BINS = 30
Sort = Literal["time", "number", "name"]


@dataclass(frozen=True)
class Drawing:
    """How rows are drawn; what is None follows from the types of the columns.

    Attributes:
        mark: one of `MARKS`.
        x, y, color: columns. Without `y`, rows are counted.
    """

    mark: str | None = None
    x: str | None = None
    y: str | None = None
    color: str | None = None

    @classmethod
    def of(cls, words: Sequence[str]) -> Drawing:
        """Of words such as `line day tasks persona`: a mark, then the columns.

        Raises:
            BadInput: ``UNKNOWN_CHART``.
        """
        if len(words) > 4:
            raise BadInput("UNKNOWN_CHART", "A chart has a mark and at most three columns: x, y and color.")
        return cls(*words)


def draw(frame: pandas.DataFrame, wish: Drawing) -> Report:
    """The picture of a frame, with a word about what it leaves out.

    Raises:
        BadInput: ``UNKNOWN_CHART``: there is no such mark or column. ``NO_PICTURE``: there is nothing to draw.
    """
    _check(frame, wish)
    if frame.empty:
        raise BadInput("NO_PICTURE", "The query has no rows, so there is nothing to draw.")
    drawing = _complete(frame, wish)
    return Report(
        "query", frame, "", _bars_of_names(frame, drawing) if _is_of_names(frame, drawing) else _plot(frame, drawing)
    )


def _check(frame: pandas.DataFrame, wanted: Drawing) -> None:
    if wanted.mark is not None and wanted.mark not in MARKS:
        raise BadInput("UNKNOWN_CHART", f"There is no chart {wanted.mark!r}. There are {', '.join(MARKS)}.")
    for column in (wanted.x, wanted.y, wanted.color):
        if column is not None and column not in frame.columns:
            near = similar(column, [str(name) for name in frame.columns])
            hint = f"Did you mean {near}?" if near else f"There are {', '.join(map(str, frame.columns))}."
            raise BadInput("UNKNOWN_CHART", f"The query has no column {column!r}. {hint}")


def _sort_of(frame: pandas.DataFrame, column: str) -> Sort | None:
    """What the values of a column are; None: what cannot be drawn, such as lists."""
    from pandas.api import types

    values = frame[column]
    if types.is_datetime64_any_dtype(values):
        return "time"
    if types.is_numeric_dtype(values) and not types.is_bool_dtype(values):
        return "number"
    is_name = values.map(lambda value: value is None or value != value or isinstance(value, str | bool)).all()
    return "name" if is_name else None


def _complete(frame: pandas.DataFrame, wish: Drawing) -> Drawing:
    """What is drawn: over time if there are times, else by name, else one number over another.

    Several rows of each name with two numbers are series, such as the loss by step of each run: a line for each name.
    """
    sorts = {str(name): _sort_of(frame, str(name)) for name in frame.columns}
    free = [name for name, sort in sorts.items() if sort and name not in (wish.x, wish.y, wish.color)]

    def first(*wished: Sort) -> str | None:
        column = next((name for sort in wished for name in free if sorts[name] == sort), None)
        if column is not None:
            free.remove(column)
        return column

    if wish.x is None and wish.mark != "bar" and _has_series(frame, sorts, free):
        x, y = wish.x or first("number"), wish.y or first("number")
        return Drawing(wish.mark or "line", x, y, wish.color or first("name"))
    x = wish.x or first("time", "name", "number")
    if x is None or sorts[x] is None:
        raise BadInput("NO_PICTURE", "No column has times, numbers or names, which can be drawn.")
    y = wish.y or first("number")
    color = wish.color or (None if wish.x else first("name"))
    usual: dict[Sort, Mark] = {"time": "line", "name": "bar", "number": "point" if y else "bar"}
    return Drawing(wish.mark or usual[sorts[x] or "name"], x, y, color)


def _has_series(frame: pandas.DataFrame, sorts: Mapping[str, Sort | None], free: Sequence[str]) -> bool:
    """Whether the free columns are two numbers, and a name that has several rows; and no time."""
    names = [name for name in free if sorts[name] == "name"]
    numbers = [name for name in free if sorts[name] == "number"]
    return (
        "time" not in sorts.values()
        and len(numbers) > 1
        and bool(names)
        and bool(frame.groupby(names[0], dropna=False)[numbers[0]].nunique().gt(1).all())
    )


def _is_of_names(frame: pandas.DataFrame, drawing: Drawing) -> bool:
    assert drawing.x is not None
    return drawing.mark == "bar" and _sort_of(frame, drawing.x) == "name"


def _bars_of_names(frame: pandas.DataFrame, drawing: Drawing) -> altair.Chart:
    """A horizontal bar for each name, as long as its number, or as it has rows."""
    rows = _columns(frame, drawing).assign(x=lambda data: data["x"].astype(object).where(data["x"].notna(), "none"))
    keys = ["x", *(["color"] if drawing.color else [])]
    summed = rows.groupby(keys, sort=False, dropna=False, as_index=False)["y"].sum()
    title = drawing.y or "rows"
    colour = "color" if drawing.color else None
    return charts.bars(
        summed.assign(x=summed["x"].map(str)), "x", "y", title, what="names", which="that come first", colour=colour
    )


def _plot(frame: pandas.DataFrame, drawing: Drawing) -> altair.Chart:
    """Marks over time, or over a number or a name."""
    import altair as alt

    rows = _columns(frame, drawing).head(charts.MOST_MARKS)
    note = charts.note_of(len(rows), len(frame), "rows", "that come first")
    marked: Any = getattr(alt.Chart(charts.rows_of(rows), width=charts.WIDTH, height=HEIGHT), f"mark_{drawing.mark}")()
    assert drawing.x is not None
    sort = _sort_of(frame, drawing.x)
    kind = {"time": "T", "number": "Q", "name": "N"}[sort or "name"]
    counted = drawing.y is None
    many = alt.Bin(maxbins=BINS) if counted and sort == "number" else alt.Undefined
    y: Any = alt.Y("count():Q", title="rows") if counted else alt.Y(f"y:{_letter(frame, drawing.y)}", title=drawing.y)
    names = list(dict.fromkeys(rows["color"])) if drawing.color else []
    is_name = drawing.color and _sort_of(frame, drawing.color) == "name"
    colour: Any = alt.value(charts.BLUE)
    if drawing.color:
        colour = (
            charts.colours("color", None, names)
            if is_name and len(names) <= len(charts.PALETTE)
            else alt.Color(f"color:{_letter(frame, drawing.color)}", title=drawing.color)
        )
    x = alt.X(f"x:{kind}", title=drawing.x, bin=many, scale=alt.Scale(zero=False) if kind == "Q" else alt.Undefined)
    return charts.finished(marked.encode(x=x, y=y, color=colour), note)


def _letter(frame: pandas.DataFrame, column: str | None) -> str:
    assert column is not None
    return {"time": "T", "number": "Q"}.get(_sort_of(frame, column) or "", "N")


def _columns(frame: pandas.DataFrame, drawing: Drawing) -> pandas.DataFrame:
    """The columns that are drawn, under plain names: a chart takes a dot or a bracket in a name for syntax."""
    import pandas

    columns = {"x": frame[drawing.x], "y": 1 if drawing.y is None else frame[drawing.y]}
    return pandas.DataFrame(columns | ({"color": frame[drawing.color]} if drawing.color else {}))
