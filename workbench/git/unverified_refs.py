"""Reads references of a worktree's own repository without running git. Workers can write them: do not trust them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.git.names import is_name, is_object_id

_LONGEST = 4_096


def branch(git_dir: Path, name: str) -> str | None:
    """The commit in a branch's loose reference file; None if there is none or it is invalid."""
    if not is_name(name):
        return None
    commit = _line(git_dir, ["refs", "heads", *name.split("/")])
    return commit if commit and is_object_id(commit) and commit == commit.lower() else None


def head(git_dir: Path) -> str | None:
    """The branch that HEAD refers to; None if it refers to none or is invalid."""
    line = _line(git_dir, ["HEAD"]) or ""
    name = line.removeprefix("ref: refs/heads/")
    return name if name != line else None


def _line(directory: Path, names: Sequence[str]) -> str | None:
    with suppress(OSError, ValueError), _opened(directory, names) as file:
        if stat.S_ISREG(os.fstat(file).st_mode):
            return os.fsdecode(os.read(file, _LONGEST)).removesuffix("\n")
    return None


@contextmanager
def _opened(directory: Path, names: Sequence[str]) -> Iterator[int]:
    """Open a file below a directory without following links or blocking."""
    how = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    place = os.open(directory, how | os.O_DIRECTORY)
    try:
        for name in names[:-1]:
            below = os.open(name, how | os.O_DIRECTORY, dir_fd=place)
            os.close(place)
            place = below
        file = os.open(names[-1], how, dir_fd=place)
    finally:
        os.close(place)
    try:
        yield file
    finally:
        os.close(file)
