"""`docs/sweeps.md`: its examples run as printed, in a terminal and in a notebook; and it names every code of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generator import ROOT
from tests.code_blocks import blocks_in, run_commands
from tests.kernel.conftest import started
from tests.sweeps.lab import write_notebook
from workbench.rules.sweeps.specification import from_yaml
from workbench.sweeps import failures

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

PAGE = ROOT / "docs" / "sweeps.md"


@pytest.fixture
def experiment(repository: Path) -> Path:
    """The notebook of the page."""
    declared, _ = blocks_in(PAGE, "python")
    return write_notebook(repository / "experiment.ipynb", declared.code, "print(seed * rate)")


def test_the_file_on_the_page_is_a_sweep() -> None:
    [block] = blocks_in(PAGE, "yaml")
    assert from_yaml(block.code, 10_000).options["memory"] == 2_000_000_000


def test_the_page_names_every_code_of_a_failed_run() -> None:
    described = (failures.__doc__ or "").split("``")[1::2]
    assert [code for code in described if f"`{code}`" not in PAGE.read_text("utf-8")] == []


def test_the_commands_of_the_page_work(experiment: Path) -> None:
    printed = run_commands(blocks_in(PAGE, "console")[0].commands, experiment.parent)
    assert printed[0].startswith("The sweep experiment has 6 runs")
    assert "6 of 6: 6 completed" in printed[1]


def test_the_notebook_cell_works_and_its_runs_attach_to_the_notebooks_server(experiment: Path, tmp_path: Path) -> None:
    _, cell = blocks_in(PAGE, "python")
    attaching = "%load_ext workbench\n%workbench start\nwb.call('create_task', title=f'of {seed}', persona_id='tester')"
    write_notebook(experiment, blocks_in(PAGE, "python")[0].code, attaching, "wb.record(score=2 * seed)")
    with started(tmp_path, cwd=experiment.parent) as kernel:
        kernel.run("%workbench start")
        try:
            shown = kernel.run(cell.code)
            magic = kernel.run("%workbench sweep experiment.ipynb -p seed=9 --name nine")
            tasks = kernel.run(
                "print(sorted((t['title'], t['session_id'] is None) for t in wb.call('list_tasks')['tasks']))"
            )
            scores = kernel.run(
                "print([r['metrics'] for r in wb.call('list_runs', sweep='seeds', sort='score')['runs']])"
            )
        finally:
            kernel.run("%workbench stop")
    assert scores.strip() == str([{"score": 2.0 * seed} for seed in (1, 2, 3)])
    assert "3 of 3: 3 completed" in shown
    assert "1 of 1: 1 completed" in magic
    assert tasks.strip() == str([(f"of {seed}", False) for seed in (1, 2, 3, 9)])
