"""The notebooks run in batch: with papermill, and with nbval, which `make test` runs by itself."""

from __future__ import annotations

from pathlib import Path

import papermill
import pytest

from tests.notebooks.stored import NOTEBOOKS, code_cells, has_parameters, is_compared

QUICKSTART = "00_quickstart"
"""Papermill runs it as `workbench demo`: see tests/test_demo.py."""
OTHERS = {"08_sweeps": {"seeds": "3..4", "workers": 1}, "09_operations": {"tasks": 1}}
"""Other parameters than those that the stored outputs are from. The notebooks not here have one: who approves."""


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem != QUICKSTART], ids=lambda path: path.stem)
def test_papermill_runs_the_whole_notebook(path: Path, tmp_path: Path) -> None:
    parameters = OTHERS.get(path.stem, {"approve": "auto"}) if has_parameters(path) else {}
    made = papermill.execute_notebook(path, tmp_path / path.name, parameters, cwd=tmp_path, progress_bar=False)
    assert made.metadata.papermill.exception is None
    *_, last = made.cells
    assert "Workbench is stopped." in str(last.outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_the_outputs_that_nbval_compares_are_stored(path: Path) -> None:
    cells = code_cells(path)
    assert [cell.source for cell in cells if bool(cell.outputs) != is_compared(cell)] == []
    assert [cell.source for cell in cells if (cell.execution_count is not None) != is_compared(cell)] == []
    assert any(map(is_compared, cells))
