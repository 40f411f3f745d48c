"""Runs the quickstart notebook headless, from plan to merge."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from workbench.errors import Unavailable
from workbench.git import Repository
from workbench.rules.tasks import plan as rules
from workbench.state.settings import shipped

NOTEBOOK = "00_quickstart.ipynb"


@dataclass(frozen=True)
class DemoRun:
    """A run of the quickstart.

    `summary` is what the notebook counted, with `project` and `plan`; it is empty if a cell failed before that, and
    `failure` then says which one and why. `notebook` is the executed notebook, and `page` the same as HTML.
    """

    notebook: Path
    page: Path
    summary: dict[str, Any]
    failure: str | None

    @property
    def pictures(self) -> list[str]:
        """The paths of the pictures that it drew."""
        return sorted(str(path) for path in self.notebook.parent.rglob("*.png"))


def run(repo: Path | None, plan: Path | None, workers: int, check: str, output: Path) -> DemoRun:
    """Execute the quickstart with papermill. On a repository where it ran before, it goes on with what is left.

    Args:
        repo: the user's git repository; None: the shipped sample.
        plan: a plan file; None: the notebook's own.
        workers: how many worker processes run at the same time.
        check: a command that must pass on the merged result; empty: the tests of the sample, none elsewhere.
        output: a new directory for this run is created in it, which git ignores.

    Raises:
        BadInput: ``NOT_A_REPOSITORY``, … or ``PLAN_INVALID``. Unavailable: ``OUTPUT_UNWRITABLE``.
    """
    if repo:
        Repository.open(repo)
    if plan:
        rules.parse(plan.read_text("utf-8"))
    folder = _folder(output)
    executed = folder / NOTEBOOK
    parameters = {
        "approve": "auto",
        "repo": str(repo.resolve()) if repo else "",
        "plan_file": str(plan.resolve()) if plan else "",
        "workers": workers,
        "check": check,
        "output": str(folder),
    }
    click.echo(f"Running {NOTEBOOK}; its output goes to {folder}", err=True)
    failure = _execute(shipped("notebooks", NOTEBOOK), executed, parameters)
    counted = folder / "summary.json"
    summary = json.loads(counted.read_text("utf-8")) if counted.exists() else {}
    return DemoRun(executed, _as_page(executed), summary, None if summary else failure)


def _folder(output: Path) -> Path:
    folder = output.resolve() / datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    try:
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("*\n", "utf-8")
    except OSError as error:
        raise Unavailable(
            "OUTPUT_UNWRITABLE", f"{output} cannot be written to: {error.strerror}. Choose another --output."
        ) from None
    return folder


def _execute(notebook: Path, executed: Path, parameters: dict[str, Any]) -> str | None:
    """Run the notebook; which cell failed and why, if one did."""
    import papermill
    from papermill.exceptions import PapermillExecutionError

    from workbench.sweeps import sockets

    try:
        with sockets.directory() as place:
            papermill.execute_notebook(
                str(notebook),
                str(executed),
                parameters=parameters,
                kernel_name="python3",
                progress_bar=sys.stderr.isatty(),
                log_output=False,
                cwd=str(executed.parent),
                config=sockets.config(place),
                extra_arguments=["--log-level=CRITICAL"],  # an interrupt at its end is none of the reader's
            )
    except PapermillExecutionError as error:
        return f"Cell {error.exec_count} failed: {error.ename}: {error.evalue}."
    return None


def _as_page(executed: Path) -> Path:
    """Save the notebook as one HTML file without references to the network."""
    from nbconvert import HTMLExporter

    body, _ = HTMLExporter(embed_images=True).from_filename(str(executed))
    page = executed.with_suffix(".html")
    page.write_text(body, "utf-8")
    return page
