"""Scratch directories: a task's command may write anything there, so nothing in them is trusted."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from workbench.system.tree_removal import remove_tree

log = logging.getLogger(__name__)


@contextmanager
def directory(parent: Path, name: str) -> Iterator[Path]:
    """A new directory that is removed at the end with all its content."""
    path = _create(parent, name)
    try:
        yield path
    finally:
        if not remove_tree(path):
            log.warning("%s cannot be removed completely", path)


def _create(parent: Path, name: str) -> Path:
    """A new directory, under another name if the one of an earlier attempt cannot be removed."""
    path = parent / name
    if remove_tree(path):
        path.mkdir(mode=0o700)
        return path
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))


def write(directory: Path, files: Mapping[str, str]) -> None:
    """Write files below a new directory, readable by their owner only."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text, "utf-8")


def read(directory: Path, name: str, limit: int) -> bytes | None:
    """The content of a file that the command may have made; None if there is none.

    Raises:
        ValueError: it is not an ordinary file, or has more than `limit` bytes. OSError: it cannot be read.
    """
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        return _read(folder, name, limit)
    finally:
        os.close(folder)


def _read(folder: int, name: str, limit: int) -> bytes | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a file")
    # Between `stat` and `open` it may become a link, which is not followed, or a pipe, which is not waited for.
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return content
