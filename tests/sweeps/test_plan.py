"""The runs of a sweep are planned, or refused, before anything starts."""

from __future__ import annotations

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
    made = new_notebook("seed = 1", "seed = 7", "print(seed)")
    made.cells[0].metadata.tags = made.cells[1].metadata.tags = ["parameters"]
    nbformat.write(made, tmp_path / "n.ipynb")
    settings = Settings(project=tmp_path)
    given = Specification("n.ipynb", {"seed": (5,)})
    assert "in cells 1 and 2" in refused("BAD_NOTEBOOK", plan.make, given, tmp_path, settings).message
    assert len(plan.make(Specification("n.ipynb"), tmp_path, settings).runs) == 1


def test_numbers_that_json_has_not_are_recorded_as_text(tmp_path: Path) -> None:
    write_notebook(tmp_path / "n.ipynb", "rate: float = 0.5")
    given = Specification("n.ipynb", {"rate": (0.5, math.nan, -math.inf)})
    made = plan.make(given, tmp_path, Settings(project=tmp_path))
    recorded = made.as_data(tmp_path)["parameters"]
    assert recorded == {"rate": [0.5, "NaN", "-Infinity"]}
    again = Specification("n.ipynb", {"rate": tuple(recorded["rate"])})
    assert plan.make(again, tmp_path, Settings(project=tmp_path)).digest == made.digest


def test_a_user_without_a_home_is_told_what_jupyter_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_notebook(tmp_path / "n.ipynb", "rate = 0.5")
    monkeypatch.setenv("HOME", "~")
    refused("NO_HOME", plan.make, Specification("n.ipynb"), tmp_path, Settings(project=tmp_path))
