"""Standard reports: each is a DataFrame, a sentence with its numbers and, for most, a picture.

- `standard/`: a module for each report, whose query has the same name in `queries/`
- `declaration`: what such a module declares; `report`: what comes of it
- `choice`: the plans, runs or projects that a report compares
- `charts`, `page`, `words`: how pictures, pages and sentences are made; `drawing`: pictures of any query
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from workbench.analytics.reports.choice import QUERIES, ReportChoice, query_of
from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.report import Report
from workbench.analytics.reports.standard import STANDARD
from workbench.analytics.results import as_frame
from workbench.errors import BadInput
from workbench.rules.naming import suggestion

if TYPE_CHECKING:
    import duckdb

__all__ = ["QUERIES", "STANDARD", "Ask", "Report", "Standard", "names", "query_of", "report"]

Ask = Callable[..., "duckdb.DuckDBPyRelation"]
"""Answers a query, whose options are those of `Question`."""


def report(name: str, ask: Ask, by: str | None = None, of: Sequence[object] = ()) -> Report:
    """Make the report with one of `names()`.

    Args:
        by: the column of the view `tasks` that `comparison` compares, such as plan or persona; or run.
        of: what is compared: groups, ids of runs, or directories of projects; by default all there are.

    Raises:
        BadInput: ``UNKNOWN_REPORT``, ``NO_GROUPS``. Others: see `Others.follow`.
    """
    if (name, by) == ("comparison", "run"):
        name, by = "runs", None
    if name not in STANDARD:
        hint = f"{suggestion(name, names())}Available: {', '.join(names())}."
        raise BadInput("UNKNOWN_REPORT", f"There is no report {name!r}. {hint}")
    standard = STANDARD[name]
    choice = ReportChoice.of(standard, by, of)
    frame = as_frame(ask(choice.query, values=choice.values, projects=choice.projects))
    choice.check(frame)
    if frame.empty:
        return Report(name, frame, standard.empty)
    if standard.arrange is not None:
        frame = standard.arrange(frame)
    chart = standard.picture(frame) if standard.picture else None
    return Report(name, frame, standard.sentence(frame), chart)


def names() -> list[str]:
    """The names of the standard reports."""
    return sorted(STANDARD)
