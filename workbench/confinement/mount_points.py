"""Where something may be mounted in a worktree: nothing of the worktree's own is there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_MOST_EMPTY = 1_000
"""How many directories without files a mount point may have: they are those of mounts below."""
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def is_taken(worktree: Path, name: Path, source: Path) -> bool:
    """Whether a worktree has at a relative path anything but a mount point for `source`, or nothing. Blocks.

    A link on the way counts: a worker may have put it there.
    """
    place = worktree
    for part in name.parts:
        place /= part
        if place.is_symlink():
            return True
        if not place.is_dir():
            return os.path.lexists(place) and (place != worktree / name or not _is_made_for(place, source))
    return source.is_file() or _has_files(place)


def _is_made_for(file: Path, source: Path) -> bool:
    """Whether the launcher made an empty file to mount `source` there: git writes none that its owner may not write."""
    facts = file.stat()
    return facts.st_size == 0 and not facts.st_mode & _WRITABLE and not source.is_dir()


def _has_files(directory: Path) -> bool:
    """Whether there is anything but directories, or very many of these."""
    for number, (top, names, files) in enumerate(os.walk(directory)):
        if files or number == _MOST_EMPTY or any((Path(top) / name).is_symlink() for name in names):
            return True
    return False
