"""Numbers of cells as their author counts them: papermill adds cells of its own to what it executes."""

from __future__ import annotations

from typing import Any

from workbench.rules.sweeps.notebook import INJECTED

_MARKER = "papermill-error-cell-tag"
"""The tag of what papermill adds around a cell that failed, after that has got its index."""


def in_source(index: int, document: Any, source: Any) -> int:
    """The number of a cell in the notebook that was to be executed, from 1. The cell with the values of the
    parameters, which papermill adds, has that of the cell before it. If the notebook is itself that of a run that
    failed, what papermill added around the failure counts, as it does for its reader, though it is not executed.

    Args:
        index: where the cell was in the document while that was executed, from 0.
        document: the notebook as far as it was executed.
    """
    cells = [cell for cell in document.cells if _MARKER not in _tags(cell)]
    added = sum(INJECTED in _tags(cell) for cell in cells[: index + 1]) - _injected(source)
    kept = [number for number, cell in enumerate(source.cells, 1) if _MARKER not in _tags(cell)]
    return kept[max(0, index - max(0, added))] if kept else 1


def _injected(source: Any) -> int:
    """The cells with values of parameters that a notebook has already; papermill replaces the first."""
    return sum(INJECTED in _tags(cell) for cell in source.cells)


def _tags(cell: Any) -> list[str]:
    return cell.metadata.get("tags") or []
