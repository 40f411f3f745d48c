"""A notebook in which a magic fails: papermill stops there and says why, and nbval reports each failing cell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from papermill.exceptions import PapermillExecutionError

pytestmark = [pytest.mark.timeout(180), pytest.mark.long]

FAILING = {
    "%workbench tasks": "NOT_STARTED: ",
    "%workbench taks": "BAD_COMMAND: ",
    "%workbench approve 'x": "BAD_COMMAND: ",
    "%%wsql\nSELECT 1": "NOT_STARTED: ",
    "%%plan --nme x\nplan: p": "BAD_COMMAND: ",
    "%%plan --file missing.yaml\n# unused": "FILE_UNREADABLE: ",
    "%%persona birder\nCount birds.": "NOT_STARTED: ",
    "wb.call('list_tasks')": "NOT_STARTED: ",
}
"""Cells that fail, and how their messages begin."""


def notebook(path: Path, *sources: str) -> Path:
    """A notebook that loads the extension, then runs these cells."""
    cells = [new_code_cell(source) for source in ("%load_ext workbench", *sources)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
    return path


def test_papermill_stops_at_a_magic_that_fails_and_says_why(tmp_path: Path) -> None:
    cell = "%%wsql\nSELECT 1"
    source = notebook(tmp_path / "failing.ipynb", cell, "print('not reached')")
    with pytest.raises(PapermillExecutionError, match=FAILING[cell]) as stopped:
        papermill.execute_notebook(source, tmp_path / "out.ipynb", cwd=tmp_path, progress_bar=False)
    assert stopped.value.exec_count == 2
    assert FAILING[cell] in str(stopped.value).splitlines()[-1]


def test_nbval_reports_every_cell_whose_magic_fails(tmp_path: Path) -> None:
    notebook(tmp_path / "failing.ipynb", *FAILING, "print('reached')")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--nbval-lax", "--nbval-current-env"]
    done = subprocess.run(
        [*command, "--tb=short", "-rfp", "failing.ipynb"],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert f"{len(FAILING)} failed, 2 passed" in done.stdout, done.stdout
    for code in set(FAILING.values()):
        assert code in done.stdout
