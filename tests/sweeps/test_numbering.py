"""Cells have the numbers that they have in the notebook that was to be executed."""

from __future__ import annotations

import nbformat
import pytest
from papermill.execute import remove_error_markers
from papermill.parameterize import parameterize_notebook

from tests.sweeps.lab import new_notebook
from workbench.sweeps import numbering


def notebook(*cells: str) -> nbformat.NotebookNode:
    """A notebook with cells whose tags these are."""
    made = new_notebook(*["x = 1"] * len(cells))
    made.metadata.papermill = {}
    for cell, tags in zip(made.cells, cells, strict=True):
        cell.metadata.tags = tags.split()
    return made


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (("parameters", "", ""), [1, 1, 2, 3]),
        (("", "parameters", ""), [1, 2, 2, 3]),
        (("parameters", "injected-parameters", ""), [1, 2, 3]),
        (("", "injected-parameters", ""), [1, 2, 3]),
        (("", ""), [1, 1, 2]),
        ((), [1]),
    ],
)
def test_the_cell_that_papermill_adds_does_not_count(cells: tuple[str, ...], numbers: list[int]) -> None:
    source = notebook(*cells)
    executed = parameterize_notebook(notebook(*cells), {"seed": 1})
    assert [numbering.in_source(index, executed, source) for index in range(len(executed.cells))] == numbers


def test_cells_that_papermill_puts_around_a_failure_do_not_count() -> None:
    source = notebook("parameters", "", "")
    executed = parameterize_notebook(notebook("parameters", "", ""), {"seed": 1})
    marker = nbformat.v4.new_markdown_cell("failed", metadata={"tags": ["papermill-error-cell-tag"]})
    executed.cells.insert(3, marker)
    executed.cells.insert(0, marker)
    assert numbering.in_source(3, executed, source) == 3


def test_a_run_that_failed_and_is_swept_again_is_counted_as_it_is_read() -> None:
    marked = ("papermill-error-cell-tag", "parameters", "injected-parameters", "papermill-error-cell-tag", "", "")
    source = notebook(*marked)
    executed = parameterize_notebook(remove_error_markers(notebook(*marked)), {"seed": 1})
    assert [numbering.in_source(index, executed, source) for index in range(4)] == [2, 3, 5, 6]
