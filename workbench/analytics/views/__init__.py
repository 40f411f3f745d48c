"""The views over the copied tables: what `workbench sql`, `%%wsql` and reports query.

Each has a file with its SQL and a comment on itself and on every column, which the manual and `workbench views` show.
Times have a time zone, and DuckDB shows them in that of the computer; waits and durations are in seconds. No name is a
word that DuckDB reserves, so a query need not quote any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import NotFound
from workbench.rules.naming import suggestion

if TYPE_CHECKING:
    import duckdb

VIEWS = (
    "held_back",
    "tasks",
    "attempts",
    "checks",
    "leases",
    "resources",
    "blocked",
    "waits",
    "dependencies",
    "critical_path",
    "approvals",
    "agents",
    "busy",
    "worktrees",
    "gates",
    "commits",
    "lineage",
    "failures",
    "tool_calls",
    "turns",
    "model_requests",
    "spending",
    "transcripts",
    "messages",
    "processes",
    "process_samples",
    "sessions",
    "personalities",
    "runs",
    "budgets",
    "run_metrics",
    "events",
)
"""Every view, in the order of the manual. A view comes after those that it uses."""


@dataclass(frozen=True)
class Column:
    """A column of a view."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class View:
    """A view and its columns, as their comments describe them."""

    name: str
    meaning: str
    columns: Sequence[Column]


def create(db: duckdb.DuckDBPyConnection) -> None:
    """Create every view, in a database that has the copied tables; without comments, which take longer than the views.

    DuckDB looks at a whole view anew for each comment on a column.
    """
    for text in _texts():
        db.execute(text.partition("\nCOMMENT ON VIEW ")[0])


def _texts() -> Iterator[str]:
    """The SQL of each view: its definition, then its comments."""
    files = {path.stem: path for path in Path(__file__).parent.rglob("*.sql")}
    return (files[name].read_text("utf-8") for name in VIEWS)


def described() -> list[View]:
    """Every view, in the order of the manual. It needs no project."""
    import duckdb

    from workbench.analytics.mirrors import create as create_tables

    with duckdb.connect() as db:
        create_tables(db)
        for text in _texts():
            db.execute(text)
        meanings = dict(db.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall())
        columns: dict[str, list[Column]] = {name: [] for name in meanings}
        query = (
            "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() ORDER BY table_name, column_index"
        )
        for view, name, kind, meaning in db.execute(query).fetchall():
            if view in columns:
                columns[view].append(Column(name, kind, meaning or ""))
    return [View(name, meanings[name] or "", columns[name]) for name in VIEWS]


def find(name: str) -> View:
    """One view.

    Raises:
        NotFound: ``VIEW_NOT_FOUND``.
    """
    for view in described():
        if view.name == name:
            return view
    hint = f"{suggestion(name, VIEWS)}Available: {', '.join(VIEWS)}."
    raise NotFound("VIEW_NOT_FOUND", f"There is no view {name!r}. {hint}")
