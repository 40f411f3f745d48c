"""Sweeps in the cells of a notebook: what a page shows of them, of what goes wrong too, and what a batch run keeps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.sweeps.lab import write_notebook

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

FAULTS = "if fault == 'raises':\n    1 / 0\nif fault == 'asks':\n    input('name?')\n"
FAULTS += "if fault == 'dies':\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)"


def outputs(project: Path, *cells: str, page: bool = True, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Any]]:
    """The outputs that a front end has of cells of a notebook of the project; those of a page, or of a batch run."""
    monkeypatch.setenv("WORKBENCH_FRONTEND", "1" if page else "0")
    monkeypatch.setenv("IPYTHONDIR", str(project / ".ipython"))
    first = "%load_ext workbench\n%workbench start"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (first, *cells)])
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute(cwd=str(project), env={**os.environ})
    return [cell.outputs for cell in notebook.cells[1:]]


@pytest.fixture
def project(repository: Path) -> Path:
    """A project with a notebook whose runs fail or not."""
    write_notebook(repository / "some.ipynb", "fault: str = 'none'\ntimes: int = 1", FAULTS)
    return repository


def test_the_progress_of_a_sweep_becomes_its_table_in_one_output(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, again, failed = outputs(
        project,
        "made = wb.sweep('some.ipynb', parameters={'times': [1, 2]}, name='made')\nmade",
        "made",
        "%workbench sweep some.ipynb -p fault=none,raises",
        monkeypatch=monkeypatch,
    )
    [table] = made
    assert table.output_type == "display_data"
    assert "made [████████████████████] 2 of 2: 2 completed" in table.data["text/plain"]
    assert "times=2" in table.data["text/html"]
    assert "<progress" not in table.data["text/html"]
    assert [output.data for output in again] == [table.data]
    table, error = failed
    assert "1 completed, 1 failed" in table.data["text/plain"]
    assert error.evalue.startswith("PARTLY_FAILED: ")


BAD = {
    "parameters={'sede': [1]}": "UNKNOWN_PARAMETER: some.ipynb has no parameter sede.",
    "parameters={'times': ['a']}": 'BAD_PARAMETER: times is "a", and some.ipynb takes a whole number there.',
    "parameters={'times': range(10**12)}": "SWEEP_TOO_LARGE: This is 1,000,000,000,000 runs or more",
    "parameters={'times': [object()]}": "NOT_A_PARAMETER: times[0] is object: a parameter is a number, text, date",
    "parameters={'times': [float('nan')]}": "BAD_PARAMETER: times is NaN, and some.ipynb takes a whole number there.",
    "parameters={'times': range(100_000)}": "SWEEP_TOO_LARGE: This is 100,000 runs or more",
    "parameters='times=1'": "BAD_SWEEP: parameters is 'times=1'. It is a dict, such as {'seed': [1, 2]}.",
    "times=[1, 2]": "BAD_SWEEP: A sweep has no option times. Values of the notebook's parameters go into parameters.",
    "worker=2": "BAD_SWEEP: A sweep has no option worker. Values of the notebook's parameters go into parameters. "
    "Did you mean workers?",
    "workers=0": "BAD_SWEEP: workers is 0. It is from 1 to",
    "timeout='soon'": "BAD_SWEEP: timeout is 'soon'. It takes a number of seconds, such as 600.",
    "memory='much'": "BAD_SWEEP: 'much' is not a size, such as 500 MB or 2 GB.",
    "repeat='2'": "BAD_PARAMETER: repeat is '2'. It is a whole number from 1 to 1,000,000",
    "dask='nowhere'": "BAD_SWEEP: dask is 'nowhere'. It is local, a name in the setting machines, or the address of",
    "name='made'": "SWEEP_EXISTS: There is a sweep made. Add resume=True to go on with it, or another name.",
    "name='none', resume=True": "SWEEP_NOT_FOUND: There is no sweep none to go on with. The newest are made",
}


FAILED = ("CELL_FAILED: Cell 2: ", "INPUT_REQUESTED: Cell 2 ", "KERNEL_DIED: ", "repeat this with retry_failed=True")


@pytest.mark.parametrize("page", [True, False], ids=["page", "batch"])
def test_a_failed_sweep_is_one_coded_line_and_failed_runs_are_lines_of_its_table(
    project: Path, monkeypatch: pytest.MonkeyPatch, page: bool
) -> None:
    first, last = "wb.sweep('some.ipynb', name='made')", "len(wb.runs)"
    cells = [f"wb.sweep('some.ipynb', {how})" for how in BAD]
    failing = "wb.sweep('some.ipynb', parameters={'fault': ['raises', 'asks', 'dies', 'none']}, name='failing')"
    [made], *tried, [runs], [table] = outputs(project, first, *cells, last, failing, page=page, monkeypatch=monkeypatch)
    assert made.output_type == ("display_data" if page else "execute_result")
    assert "1 of 1: 1 completed" in made.data["text/plain"]
    for [error], said in zip(tried, BAD.values(), strict=True):
        assert error.evalue.startswith(said), error.evalue
        assert "\n" not in error.evalue
        assert len(error.traceback) == 1, "only a line, without the frames of Workbench"
    assert runs.data["text/plain"] == "1", "nothing is recorded of them"
    for said in FAILED:
        assert table.data["text/plain"].count(said) == 1
