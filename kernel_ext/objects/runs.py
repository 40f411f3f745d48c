"""Runs as objects of a notebook: `wb.runs`, and what a notebook records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from kernel_ext.definition_sections import Missing
from kernel_ext.libraries import imported
from kernel_ext.objects.artifacts import ArtifactView
from kernel_ext.objects.kinds import NotebookSession, ObjectKind, got_by
from kernel_ext.objects.rows import Listing, Row, Rows
from kernel_ext.wording import in_objects
from workbench.cli.runs import NO_RUNS, comparison_table, no_series, run_page, run_table
from workbench.errors import BadInput, NotFound
from workbench.present.tables import Table, TablePage
from workbench.recording import values
from workbench.rules.runs.values import as_number

if TYPE_CHECKING:
    import pandas

POINTS = 100_000
"""The most points of a series that are read."""


class Run(Row):
    """A run of an experiment; a cell shows all of it."""

    _KIND: ClassVar[ObjectKind[Run]]

    id: int
    key: str
    sweep_id: int | None
    sweep: str | None
    parent_id: int | None
    name: str
    notebook: str | None
    parameters: dict[str, Any]
    state: str
    error_code: str | None
    error: str | None
    session_id: str | None
    git_commit: str | None
    git_dirty: bool | None
    output: str | None
    tries: int
    tags: list[str]
    metrics: dict[str, Any]
    artifacts: int
    created_by: str
    started_at: str
    ended_at: str | None
    archived_at: str | None
    definitions: dict[str, str]
    environment: dict[str, Any]
    notes: str
    series: list[dict[str, Any]]
    files: list[dict[str, Any]]
    inner: list[dict[str, Any]]

    def frame(self, *names: str) -> pandas.DataFrame:
        """Its series as columns, a row for each step; without names, all of them.

        Longer series than 100,000 values are thinned evenly.

        Raises:
            BadInput: ``UNKNOWN_METRIC``: it has no series of a name.
        """
        imported("pandas")
        import pandas

        recorded = self._call("get_run_series", run_id=self.id, names=list(names), max_points=POINTS)
        if missing := [name for name in names if name not in {each["name"] for each in recorded["series"]}]:
            raise no_series(missing[0], self._KIND.read(self._notebook, self.id))
        columns = {
            each["name"]: pandas.Series({step: _cell(value) for step, value in each["points"]})
            for each in recorded["series"]
        }
        frame = pandas.DataFrame(columns)
        frame.index.name = "step"
        return frame

    def record(self, metrics: Mapping[str, Any] | None = None, /, *, step: int | None = None, **more: Any) -> None:
        """Add values, also after it has ended, such as a later evaluation.

        Raises:
            BadInput: ``NOT_A_METRIC``. WorkbenchError: see the operation ``record_metrics``.
        """
        self._change("record_metrics", run_id=self.id, metrics=values.metrics(metrics, more), step=values.step(step))

    def artifact(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        """Add a file of the project that it made."""
        self._change("add_run_artifact", run_id=self.id, path=os.path.abspath(path), name=name)  # noqa: PTH100

    def open(self, name: str) -> ArtifactView:
        """What one of its artifacts contains: a cell shows the picture, the first rows of the table, or the text.

        Raises:
            NotFound: ``ARTIFACT_NOT_FOUND``. Unavailable: ``ARTIFACT_UNREADABLE``.
        """
        return ArtifactView(self._call("get_run_artifact", run_id=self.id, name=name))

    def rename(self, name: str) -> None:
        """Give it another name."""
        self._change("update_run", run_id=self.id, name=name)

    def tag(self, *tags: str) -> None:
        """Give it tags."""
        self._change("update_run", run_id=self.id, add_tags=list(tags))

    def untag(self, *tags: str) -> None:
        """Take tags away."""
        self._change("update_run", run_id=self.id, remove_tags=list(tags))

    def note(self, text: str) -> None:
        """Set its notes, in Markdown."""
        self._change("update_run", run_id=self.id, notes=text)

    def archive(self) -> None:
        """Put it away: lists leave it out."""
        self._change("archive_run", run_id=self.id)

    def restore(self) -> None:
        """Bring it back after it was archived."""
        self._change("restore_run", run_id=self.id)

    def _render(self) -> TablePage:
        if not self._whole:
            self.refresh()
        return run_page(self._values)


class Runs(Listing[Run]):
    """The runs of the project, the newest first; `wb.runs(sweep="grid", state="failed", where="loss<0.1")`.

    `wb.runs[7]` and `wb.runs["baseline"]` find one. A name that several runs have is refused with their ids:
    ``AMBIGUOUS_NAME``.
    """

    def __init__(self, notebook: NotebookSession) -> None:
        super().__init__(notebook, Run._KIND)

    def __call__(self, **filters: Any) -> Any:
        """Those that match now.

        Args:
            filters: arguments of the operation `list_runs`; `where` may be one condition.

        Raises:
            BadInput: ``INVALID_ARGUMENTS``, ``BAD_CONDITION``, ``UNKNOWN_METRIC``.
        """
        where = filters.get("where")
        runs = super().__call__(**{**filters, "where": [where]} if isinstance(where, str) else filters)
        return runs.shown_by(partial(run_table, by=filters.get("sort")))

    def sort(self, by: str, *, reverse: bool = False) -> Rows[Run]:
        """All runs, sorted.

        Args:
            by: `name`, `state`, `started`, `duration`, a metric, whose last values count, or a parameter that is a
                number. With ``-`` before it, the largest first. Runs without it come last.
            reverse: the largest first.

        Raises:
            BadInput: ``INVALID_ARGUMENTS``.
        """
        runs: Rows[Run] = self(sort=f"-{by}" if reverse and not str(by).startswith("-") else by)
        return runs

    def __contains__(self, key: object) -> bool:
        try:
            return super().__contains__(key)
        except BadInput as error:
            if error.code != "AMBIGUOUS_NAME":
                raise
            return True

    def compare(self, *runs: int | str | Run, all_rows: bool = False) -> RunComparison:
        """Runs beside each other: a table of their differences, and parallel coordinates.

        Args:
            runs: their ids or names, or the runs themselves.
            all_rows: also what does not differ.

        Raises:
            NotFound: ``RUN_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``.
        """
        refs = [run.id if isinstance(run, Run) else run for run in runs]
        try:
            return RunComparison(self._notebook.call("compare_runs", run_ids=refs, all_rows=all_rows))
        except NotFound as error:
            raise Missing(error.code, in_objects(error).message, **error.details) from None


class RunComparison:
    """Runs beside each other. A cell shows a table of their differences."""

    def __init__(self, comparison: Mapping[str, Any]) -> None:
        self.data = dict(comparison)

    @property
    def table(self) -> Table:
        """A row for each difference, a column for each run."""
        return comparison_table(self.data)

    def frame(self) -> pandas.DataFrame:
        """The differences as a DataFrame, with a column for each run's id."""
        imported("pandas")
        import pandas

        ids = [run["id"] for run in self.data["runs"]]
        index = pandas.MultiIndex.from_tuples([(row["section"], row["name"]) for row in self.data["rows"]])
        return pandas.DataFrame([row["values"] for row in self.data["rows"]], index=index, columns=ids)

    def __repr__(self) -> str:
        return self.table.text()

    def chart(self) -> Any:
        """Parallel coordinates of the numbers in which the runs differ; None if there are fewer than two."""
        from workbench.analytics.run_report import parallel_coordinates

        return parallel_coordinates(self.data)

    def _repr_html_(self) -> str:
        from workbench.analytics.run_report.page import coordinates_figure

        return self.table.html() + coordinates_figure(self.data)


def _cell(value: Any) -> Any:
    number = as_number(value)
    return value if number is None else number


Run._KIND = ObjectKind(
    Run,
    "list_runs",
    "runs",
    "id",
    run_table,
    NO_RUNS,
    got_by("get_run", "run_id"),
    first={"limit": 500},
    names=("name",),
    spread=("parameters", "metrics"),
)
