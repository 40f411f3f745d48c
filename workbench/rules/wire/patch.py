"""Differences of files as text.

Alone: commands and the MCP server show the same text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def patch_text(files: Sequence[Mapping[str, Any]]) -> str:
    """The unified diffs of files, one after the other."""
    return "".join(file["patch"] or _without_patch(file) for file in files).rstrip("\n")


def _without_patch(file: Mapping[str, Any]) -> str:
    why = "too long to show" if file["truncated"] else "binary" if file["binary"] else "nothing to show"
    return f"{file['status']} {file['path']} ({why})\n"
