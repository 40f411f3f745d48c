"""The notebooks run in batch: with papermill, and with nbval, which `make test` runs by itself."""

from __future__ import annotations

from pathlib import Path

import papermill
import pytest
from papermill.translators import PythonTranslator

from tests.chance import chance
from tests.notebooks.stored import FOLDER, NOTEBOOKS, code_cells, is_compared

ELSEWHERE = {"00_quickstart", "01_registration"}
"""`workbench demo` runs the first with papermill, see tests/test_demo.py. The other has one parameter: who decides. In
nbval's run it decides by itself, in tests/browser/test_manual_notebooks.py a person does."""
OTHERS = {
    "02_tasks": {"lease_seconds": 0.5},
    "03_worktrees": {"gate": "python -m pytest -q -x -p no:cacheprovider"},
    "04_definitions": {"model": "openai:gpt-5"},
    "05_tools": {"penguins": 47},
    "06_personalities": {"mood": "patient"},
    "07_analytics": {"plans": ["whales"]},
    "08_sweeps": {"seeds": "3..4", "workers": 1},
    "09_operations": {"tasks": 1},
    "10_agents": {"islands": 2},
    "11_your_repository": {"rows": 2},
}
"""Other parameters than those that the stored outputs are from."""


@pytest.mark.long
@pytest.mark.timeout(240)
@pytest.mark.parametrize("first", range(2))
def test_papermill_runs_the_whole_notebook_with_other_parameters(first: int, tmp_path: Path) -> None:
    name = chance().choice(sorted(OTHERS)[first::2])  # of every second; nbval runs them all
    print(name)
    path = FOLDER / f"{name}.ipynb"
    notebook = papermill.execute_notebook(path, tmp_path / path.name, OTHERS[name], cwd=tmp_path, progress_bar=False)
    assert notebook.metadata.papermill.exception is None
    *_, last = notebook.cells
    assert "Workbench is stopped." in str(last.outputs)


def test_the_other_parameters_are_of_every_notebook_and_differ_from_its_own() -> None:
    assert set(OTHERS) == {path.stem for path in NOTEBOOKS} - ELSEWHERE
    for path in NOTEBOOKS:
        own = papermill.inspect_notebook(path)
        for name, value in OTHERS.get(path.stem, {}).items():
            assert own[name]["default"] != PythonTranslator.translate(value), f"{path.stem}: {name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_only_the_outputs_that_nbval_compares_are_stored(path: Path) -> None:
    cells = code_cells(path)
    assert [cell.source for cell in cells if bool(cell.outputs) != is_compared(cell)] == []
    assert [cell.source for cell in cells if (cell.execution_count is not None) != is_compared(cell)] == []
    assert any(map(is_compared, cells))
