"""A report that was made: rows, a sentence about them, a picture."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.analytics.reports import charts
from workbench.analytics.reports.page import page
from workbench.analytics.reports.png import packed
from workbench.errors import BadInput, Unavailable
from workbench.present.inert import as_html
from workbench.present.tables import Table
from workbench.system import atomic_file

if TYPE_CHECKING:
    import altair
    import pandas

SCRIPT = Path(__file__).with_suffix(".js")
ROWS = 200
"""The most rows of a frame that are shown; `frame` has all."""
WHOLE_FROM, EXACT_TO = 1_000, 1e15
"""Between these, numbers are shown without what is behind the point; above, a whole number would be all zeros."""
SUFFIXES = (".html", ".png", ".svg")


@dataclass(frozen=True, repr=False)
class Report:
    """A standard report. A cell shows its sentence and its picture, or else its table."""

    name: str
    frame: pandas.DataFrame
    sentence: str = ""
    chart: altair.Chart | None = field(default=None, repr=False)

    @property
    def data(self) -> dict[str, Any]:
        """The report for programs."""
        rows = json.loads(self.frame.to_json(orient="records", date_format="iso"))
        return {"report": self.name, "sentence": self.sentence, "rows": rows}

    def save(self, path: Path) -> Path:
        """Save it; the suffix chooses the format: .html, or that of its picture: .png or .svg.

        Raises:
            BadInput: ``NO_PICTURE``, ``UNKNOWN_FORMAT``. Unavailable: ``OUTPUT_UNWRITABLE``.
        """
        if path.suffix not in SUFFIXES:
            raise BadInput("UNKNOWN_FORMAT", f"{path.name} does not end in {', '.join(SUFFIXES)}.")
        if self.chart is None and path.suffix != ".html":
            raise BadInput("NO_PICTURE", f"The report {self.name} has no picture; use its `frame`.")
        try:
            with atomic_file.replacing(path) as fresh:
                self._write(fresh, path.suffix)
        except OSError as error:
            reason = error.strerror or error
            raise Unavailable(
                "OUTPUT_UNWRITABLE", f"{path} cannot be written: {reason}. Choose another file."
            ) from None
        return path

    def _write(self, file: Path, suffix: str) -> None:
        if self.chart is None or suffix == ".html":
            file.write_text(self.html(), "utf-8")
        elif suffix == ".png":
            file.write_bytes(_png(self.chart))
        else:
            self.chart.save(str(file), format="svg")

    def html(self) -> str:
        """A page that needs no server and no network, in the browser's light or dark colours."""
        return page(f"Report: {self.name}", self.sentence, self._drawing(), self.table().html())

    def table(self) -> Table:
        """The first rows of the frame."""
        values = self.frame.astype(object)
        cells = values.where(values.notna(), None).head(ROWS).to_numpy().tolist()
        columns = [_readable(column) for column in zip(*cells, strict=True)]
        rows = [list(row) for row in zip(*columns, strict=True)]
        more = len(self.frame) - ROWS
        note = f"… and {more:,} more rows; `frame` has all" if more > 0 else ""
        return Table([str(name) for name in self.frame.columns], rows, "", note=note)

    def __repr__(self) -> str:
        return "\n\n".join(filter(None, (self.sentence, self.table().text())))

    def _drawing(self) -> str:
        """The picture as SVG in the colours of the page around it."""
        if self.chart is None:
            return ""
        import vl_convert

        drawn: str = vl_convert.vegalite_to_svg(json.dumps(charts.on_any_background(self.chart)))
        return drawn

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The picture in the colours of the page, and as a PNG where no HTML is shown; or the table."""
        about = f"<p>{as_html(self.sentence)}</p>" if self.sentence else ""
        if self.chart is None:
            return {"text/plain": repr(self), "text/html": about + self.table().html()}
        source = f"data:image/svg+xml;base64,{base64.b64encode(self._drawing().encode()).decode()}"
        image = f'<img src="{source}" alt="Report {self.name}" style="background: white">'
        script = f"<script>{SCRIPT.read_text('utf-8')}</script>"
        return {
            "text/plain": repr(self),
            "text/html": f'{about}<div style="overflow-x: auto">{image}{script}</div>',
            "image/png": base64.b64encode(_png(self.chart)).decode(),
        }


def _png(chart: altair.Chart) -> bytes:
    """The picture, for screens with many pixels."""
    import vl_convert

    return packed(vl_convert.vegalite_to_png(json.dumps(chart.to_dict()), scale=2))


def _readable(column: Sequence[Any]) -> list[Any]:
    """The cells of a column as a table shows them: numbers with four digits, whole ones without a point."""
    numbers = [cell for cell in column if isinstance(cell, float)]
    is_whole = all(number.is_integer() for number in numbers)
    return [_cell(cell, is_whole) for cell in column]


def _cell(cell: Any, is_whole: bool) -> Any:
    if isinstance(cell, float):
        return int(cell) if is_whole and abs(cell) < EXACT_TO else _rounded(cell)
    return cell.to_pydatetime() if hasattr(cell, "to_pydatetime") else cell


def _rounded(number: float) -> float | int:
    return round(number) if WHOLE_FROM <= abs(number) < EXACT_TO else float(f"{number:.4g}")
