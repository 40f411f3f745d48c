"""Numbers of cells as their author counts them: papermill adds cells of its own to what it executes."""

from __future__ import annotations

from typing import Any

from workbench.rules.sweeps.notebook import INJECTED

_MARKER = "papermill-error-cell-tag"
"""The tag of cells that papermill adds around a failed cell, after it has numbered that cell."""


def in_source(index: int, document: Any, source: Any) -> int:
    """The number of a cell in the notebook to execute, from 1. The cell with the values of the parameters, which
    papermill adds, has the number of the cell before it. If the notebook is the result of a failed run, the cells that
    papermill added around the failure count, as for its reader, though they are not executed.

    Args:
        index: the position of the cell in the document during the execution, from 0.
        document: the notebook as far as it was executed.
    """
    cells = [cell for cell in document.cells if _MARKER not in _tags(cell)]
    added = sum(INJECTED in _tags(cell) for cell in cells[: index + 1]) - _count_injected(source)
    numbers = [number for number, cell in enumerate(source.cells, 1) if _MARKER not in _tags(cell)]
    return numbers[max(0, index - max(0, added))] if numbers else 1


def _count_injected(source: Any) -> int:
    """The cells with values of parameters that a notebook has already; papermill replaces the first."""
    return sum(INJECTED in _tags(cell) for cell in source.cells)


def _tags(cell: Any) -> list[str]:
    return cell.metadata.get("tags") or []
