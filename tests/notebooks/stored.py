"""The notebooks of the manual, and their stored outputs: those that nbval compares."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from nbval.plugin import get_sanitize_patterns

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SANITIZE = FOLDER.parent / "data" / "starter" / "nbval.cfg"
COMPARED = "nbval-check-output"
"""The tag of cells whose outputs are stored and compared. Their outputs are the same in every run, once sanitized."""


def code_cells(path: Path) -> list[Any]:
    """The code cells of a notebook."""
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def is_compared(cell: Any) -> bool:
    """Whether nbval compares the outputs of a cell."""
    return COMPARED in cell.metadata.get("tags", [])


def sanitized(text: str) -> str:
    """A text as nbval compares it."""
    for pattern, replacement in get_sanitize_patterns(SANITIZE.read_text("utf-8")):
        text = re.sub(pattern, replacement, text)
    return text
