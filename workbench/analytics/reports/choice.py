"""What a report compares: groups of tasks, runs, or projects; and the query that follows from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.analytics import views
from workbench.analytics.reports.declaration import Standard
from workbench.errors import BadInput
from workbench.state.home import expanded

if TYPE_CHECKING:
    import pandas

QUERIES = Path(__file__).parent / "queries"
HERE = "this project"
KEYS = {"groups": "compared", "runs": "run"}
"""The column with what was chosen."""


@dataclass(frozen=True)
class ReportChoice:
    """The query of a report, with what was chosen.

    Attributes:
        groups: the groups or runs, as texts; empty: all.
        projects: the roots of other projects, by name; None: the query uses no others.
    """

    standard: Standard
    query: str
    groups: Sequence[str] = ()
    projects: Mapping[str, Path] | None = None

    @classmethod
    def of(cls, standard: Standard, by: str | None, chosen: Sequence[object]) -> ReportChoice:
        """The choice of these groups, runs or directories.

        Raises:
            BadInput: ``NO_GROUPS``: the report compares none, or the projects are not given.
        """
        if standard.compares is None and chosen:
            raise BadInput(
                "NO_GROUPS", f"The report {standard.name} compares nothing. Use comparison, runs or projects."
            )
        query = query_of(standard, by)
        if standard.compares != "projects":
            return cls(standard, query, [str(item) for item in chosen])
        projects = _name_projects([str(item) for item in chosen])
        every = [("", HERE), *((f'"{name}".', name) for name in projects)]
        parts = [query.replace("{{project}}", prefix).replace("{{name}}", f"'{name}'") for prefix, name in every]
        return cls(standard, " UNION ALL ".join(f"({part})" for part in parts), (), projects or None)

    @property
    def values(self) -> Mapping[str, object]:
        """The parameters of the query."""
        return {"groups": list(self.groups)}

    def check(self, frame: pandas.DataFrame) -> None:
        """Refuse what the rows have not.

        Raises:
            BadInput: ``NO_GROUPS``.
        """
        if not self.groups:
            return
        present = {str(one) for one in frame[KEYS[self.standard.compares or "groups"]]}
        if missing := [one for one in self.groups if one not in present]:
            what = "run" if self.standard.compares == "runs" else "group with tasks"
            raise BadInput("NO_GROUPS", f"There is no {what} {', '.join(missing)} to compare.")


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
        raise BadInput("NO_GROUPS", f"Tasks cannot be grouped by {column!r}. Choose one of {', '.join(known)}, run.")
    return text.replace("{{by}}", column)


def _name_projects(directories: Sequence[str]) -> Mapping[str, Path]:
    """Roots of projects by name: `name=directory`, or a directory that gives its name."""
    projects: dict[str, Path] = {}
    for text in directories:
        name, equals, directory = text.rpartition("=")
        root = Path(directory if equals and re.fullmatch(r"\w+", name) else text)
        free_name = name if equals and root == Path(directory) else _word(expanded(root).resolve().name)
        while free_name in projects:
            free_name += "_"
        projects[free_name] = root
    return projects


def _word(name: str) -> str:
    """A directory's name as one of a project in a query."""
    word = re.sub(r"\W", "_", name.lower(), flags=re.ASCII)
    return word if re.match(r"[a-z_]", word) and word not in views.VIEWS else f"p_{word}"
