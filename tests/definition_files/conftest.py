"""The error of a call, and the files of definitions as they are on disk."""

from __future__ import annotations

from pathlib import Path

from workbench.definition_files.journal import PRIVATE


def everything(place: Path) -> dict[str, bytes]:
    """All files below a directory but those that Workbench keeps beside definitions."""
    files = (path for path in place.rglob("*") if path.is_file() and PRIVATE not in path.parts)
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in files}
