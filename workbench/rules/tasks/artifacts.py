"""What an agent names as artifacts of its task: files, commits and addresses. Pure.

An agent may write anything there, so a name is only ever a path below a directory that the caller chooses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Literal

Kind = Literal["file", "commit", "address"]

_COMMIT = re.compile(r"commit:([0-9a-f]{40}|[0-9a-f]{64})")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_PRIVATE = {".git", ".aiswarm"}
"""Directories of a project whose files no agent has made."""


def kind(artifact: str) -> Kind:
    """What an artifact is, as far as its name says."""
    if artifact.startswith("commit:"):
        return "commit"
    return "address" if _ADDRESS.fullmatch(artifact) else "file"


def commit(artifacts: Iterable[str]) -> str | None:
    """The id of the last commit among artifacts: that of the whole work, if a supervisor made it."""
    found = [match[1] for one in artifacts if (match := _COMMIT.fullmatch(one))]
    return found[-1] if found else None


def place(artifact: str, root: Path) -> str | None:
    """The path of a file from a directory; None if it is not below it, or not a file that agents make."""
    path = PurePosixPath(artifact)
    if path.is_absolute():
        if not path.is_relative_to(root):
            return None
        path = path.relative_to(root)
    is_allowed = path.parts and ".." not in path.parts and "\0" not in artifact and path.parts[0] not in _PRIVATE
    return path.as_posix() if is_allowed else None
