"""Standard reports: each is a DataFrame, a sentence with its numbers and, for most, a picture.

- `standard/`: a module for each report, whose query has the same name in `queries/`
- `declaration`: what such a module declares; `report`: what comes of it
- `charts`, `page`, `words`: how pictures, pages and sentences are made
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.analytics import views
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.report import Report
from workbench.analytics.reports.standard import STANDARD
from workbench.analytics.results import as_frame
from workbench.errors import BadInput

if TYPE_CHECKING:
    import duckdb

__all__ = ["QUERIES", "STANDARD", "Ask", "Report", "Standard", "names", "query_of", "report"]

QUERIES = Path(__file__).parent / "queries"

Ask = Callable[[str], "duckdb.DuckDBPyRelation"]


def report(name: str, ask: Ask, by: str | None = None) -> Report:
    """Make the report with one of `names()`.

    Args:
        by: the column of the view `tasks` that a report of groups compares, such as plan or persona.

    Raises:
        BadInput: ``UNKNOWN_REPORT``, ``NO_GROUPS``.
    """
    if name not in STANDARD:
        raise BadInput("UNKNOWN_REPORT", f"There is no report {name!r}. Available: {', '.join(names())}.")
    standard = STANDARD[name]
    frame = as_frame(ask(query_of(standard, by)))
    if frame.empty:
        return Report(name, frame, standard.empty)
    chart = standard.picture(frame) if standard.picture else None
    return Report(name, frame, standard.sentence(frame), chart)


def names() -> list[str]:
    """The names of the standard reports."""
    return sorted(STANDARD)


def query_of(standard: Standard, by: str | None = None) -> str:
    """The query of a report.

    Raises:
        BadInput: ``NO_GROUPS``: it compares no groups, or not by this column.
    """
    text = (QUERIES / f"{standard.name}.sql").read_text("utf-8")
    if standard.groups_by is None:
        if by is not None:
            raise BadInput("NO_GROUPS", f"The report {standard.name} compares no groups. Use comparison.")
        return text
    column = by or standard.groups_by
    known = [one.name for one in views.find("tasks").columns if one.type in ("VARCHAR", "BIGINT")]
    if column not in known:
        raise BadInput("NO_GROUPS", f"Tasks cannot be grouped by {column!r}. Choose one of {', '.join(known)}.")
    return text.replace("{{by}}", column)
