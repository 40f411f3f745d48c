"""nbval in strict mode: what a person has run, saved and runs again passes, with the file that `workbench init` writes.

Cells that show measurements, such as seconds or the size of a process, are tagged `nbval-ignore-output`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from tests.chance import chance
from tests.conftest import git, typed
from tests.notebooks.stored import FOLDER, NOTEBOOKS, SANITIZE

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]


def saved(notebook: Path, place: Path) -> Path:
    """A notebook as it is saved after *Run All*, in a place of its own."""
    papermill.execute_notebook(notebook, place / notebook.name, cwd=place, progress_bar=False)
    run = nbformat.read(place / notebook.name, as_version=4)
    run.cells = [cell for cell in run.cells if "injected-parameters" not in cell.metadata.get("tags", ())]
    nbformat.write(run, place / notebook.name)
    return place / notebook.name


def compare(notebook: Path, sanitize: Path) -> None:
    """Run a saved notebook again, and compare all its outputs but those that are tagged."""
    options = ["--nbval", "--nbval-current-env", f"--nbval-sanitize-with={sanitize}", "--nbval-cell-timeout=200"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, notebook.name]
    ran = subprocess.run(command, cwd=notebook.parent, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-4_000:]


def test_a_notebook_of_the_manual_that_was_run_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.environ.get("NOTEBOOK") or chance().choice([path.stem for path in NOTEBOOKS])
    print(name)
    monkeypatch.setenv("WORKBENCH_QUICKSTART_APPROVE", "auto")
    compare(saved(FOLDER / f"{name}.ipynb", tmp_path), SANITIZE)


def test_the_notebook_that_init_made_passes(repository: Path) -> None:
    subprocess.run([sys.executable, "-m", "workbench.cli", "init"], cwd=repository, check=True, capture_output=True)
    git("add", ".", cwd=repository)
    git("commit", "-q", "-m", "A project to begin with", cwd=repository)
    notebook = repository / "workbench.ipynb"
    notebook.write_text(notebook.read_text().replace('approve = \\"ask\\"', 'approve = \\"auto\\"'))
    run = nbformat.read(saved(notebook, repository), as_version=4)
    code = [cell for cell in run.cells if cell.cell_type == "code"]
    assert "wb.decided" in code[5].source, "the sixth cell merges what an agent did"
    assert "Workbench is stopped." in str(code[-1].outputs)
    assert (repository / "FINDINGS.md").read_text() == "344 penguins were measured.\n"
    tasks = typed("--project", str(repository), "--json", "tasks")
    assert [task["status"] for task in json.loads(tasks.out)] == 3 * ["completed"]
    compare(notebook, repository / "nbval.cfg")
