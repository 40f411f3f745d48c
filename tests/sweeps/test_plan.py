"""The runs of a sweep are planned, or refused, before anything starts."""

from __future__ import annotations

import json
import math
from pathlib import Path

import nbformat
import pytest

from tests.given import refused
from tests.sweeps.lab import new_notebook, write_notebook
from workbench.rules.sweeps.specification import Specification
from workbench.state.settings import Settings
from workbench.sweeps import plan


def test_a_notebook_that_would_replace_the_values_is_refused_unless_it_gets_none(tmp_path: Path) -> None:
    notebook = new_notebook("seed = 1", "seed = 7", "print(seed)")
    notebook.cells[0].metadata.tags = notebook.cells[1].metadata.tags = ["parameters"]
    nbformat.write(notebook, tmp_path / "n.ipynb")
    settings = Settings(project=tmp_path)
    specification = Specification("n.ipynb", {"seed": (5,)})
    assert "in cells 1 and 2" in refused("BAD_NOTEBOOK", plan.make, specification, tmp_path, settings).message
    assert len(plan.make(Specification("n.ipynb"), tmp_path, settings).runs) == 1


@pytest.mark.filterwarnings("error")
def test_cells_without_an_id_or_with_that_of_another_are_no_warning_and_no_other_sweep(tmp_path: Path) -> None:
    notebook = new_notebook("seed = 1", "print(seed)", "print(2 * seed)")
    notebook.cells[0].metadata.tags = ["parameters"]
    notebook.cells[2].id = notebook.cells[1].id
    del notebook.cells[0]["id"]
    (tmp_path / "n.ipynb").write_text(json.dumps(notebook))
    made = [plan.make(Specification("n.ipynb", {"seed": (5,)}), tmp_path, Settings(project=tmp_path)) for _ in range(2)]
    assert made[0].digest == made[1].digest


def test_numbers_that_json_has_not_are_recorded_as_text(tmp_path: Path) -> None:
    write_notebook(tmp_path / "n.ipynb", "rate: float = 0.5")
    specification = Specification("n.ipynb", {"rate": (0.5, math.nan, -math.inf)})
    made = plan.make(specification, tmp_path, Settings(project=tmp_path))
    recorded = made.as_data(tmp_path)["parameters"]
    assert recorded == {"rate": [0.5, "NaN", "-Infinity"]}
    again = Specification("n.ipynb", {"rate": tuple(recorded["rate"])})
    assert plan.make(again, tmp_path, Settings(project=tmp_path)).digest == made.digest


def test_a_user_without_a_home_is_told_what_jupyter_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_notebook(tmp_path / "n.ipynb", "rate = 0.5")
    monkeypatch.setenv("HOME", "~")
    refused("NO_HOME", plan.make, Specification("n.ipynb"), tmp_path, Settings(project=tmp_path))
