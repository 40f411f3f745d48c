"""`python -m tests.notebooks` runs the notebooks and stores their outputs (see `stored`)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.notebooks.stored import NOTEBOOKS, is_compared, sanitized

CELL_SECONDS = 300


def store(path: Path) -> None:
    """Run a notebook and write the outputs of its compared cells. Those that have not really changed stay."""
    kept = nbformat.read(path, as_version=4)
    notebook = nbformat.from_dict(kept)
    NotebookClient(notebook, timeout=CELL_SECONDS).execute()
    for cell, run in zip(kept.cells, notebook.cells, strict=True):
        if cell.cell_type == "code" and not is_compared(cell):
            cell.outputs, cell.execution_count = [], None
        elif cell.cell_type == "code" and _compared(run.outputs) != _compared(cell.outputs):
            cell.outputs, cell.execution_count = run.outputs, run.execution_count
    nbformat.write(kept, path)


def _compared(outputs: Any) -> str:
    return sanitized(json.dumps(outputs, sort_keys=True))


if __name__ == "__main__":
    os.environ["WORKBENCH_QUICKSTART_APPROVE"] = "auto"
    for chosen in map(Path, sys.argv[1:] or NOTEBOOKS):
        store(chosen)
