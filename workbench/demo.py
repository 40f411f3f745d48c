"""`workbench demo`: runs the quickstart notebook headless, from plan to merge."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from workbench.errors import Unavailable
from workbench.git import Repository
from workbench.rules.tasks import plan as rules
from workbench.settings import shipped
from workbench.tables import Table

NOTEBOOK = "00_quickstart.ipynb"


def run(repo: Path | None, plan: Path | None, workers: int, output: Path) -> Table:
    """Execute the quickstart with papermill; a summary and the paths of the results.

    Args:
        repo: the user's git repository; None: the shipped sample.
        plan: a plan file; None: the notebook's own.
        workers: how many worker processes run at the same time.
        output: a new directory for this run is created in it.

    Raises:
        BadInput: ``NOT_A_REPOSITORY``, … or ``PLAN_INVALID``.
        Unavailable: ``DEMO_FAILED``; the executed notebook shows where.
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
        "output": str(folder),
    }
    click.echo(f"Running {NOTEBOOK}; its output goes to {folder}", err=True)
    _execute(shipped("notebooks", NOTEBOOK), executed, parameters)
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))
    page = _as_page(executed)
    pictures = sorted(str(path) for path in folder.rglob("*.png"))
    data = {**summary, "notebook": str(executed), "html": str(page), "pictures": pictures}
    rows = [[name, value] for name, value in data.items() if name != "pictures"]
    return Table(["", ""], rows + [["picture", path] for path in pictures], data=data)


def _folder(output: Path) -> Path:
    folder = output.resolve() / datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise Unavailable(
            "OUTPUT_UNWRITABLE", f"{output} cannot be written to: {error.strerror}. Choose another --output."
        ) from None
    return folder


def _execute(notebook: Path, executed: Path, parameters: dict[str, Any]) -> None:
    import papermill
    from papermill.exceptions import PapermillExecutionError

    try:
        papermill.execute_notebook(
            str(notebook),
            str(executed),
            parameters=parameters,
            kernel_name="python3",
            progress_bar=sys.stderr.isatty(),
            log_output=False,
            cwd=str(executed.parent),
        )
    except PapermillExecutionError as error:
        raise Unavailable(
            "DEMO_FAILED",
            f"Cell {error.exec_count} failed: {error.ename}: {error.evalue}. Open {executed} for details.",
        ) from None


def _as_page(executed: Path) -> Path:
    """Save the notebook as one HTML file without references to the network."""
    from nbconvert import HTMLExporter

    body, _ = HTMLExporter(embed_images=True).from_filename(str(executed))
    page = executed.with_suffix(".html")
    page.write_text(body, "utf-8")
    return page
