"""Scratch directories: a task's command writes what it likes there, so that nothing in them is trusted."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def directory(parent: Path, name: str) -> Iterator[Path]:
    """A new directory that is removed at the end, whatever is in it."""
    made = parent / name
    made.mkdir(mode=0o700)
    try:
        yield made
    finally:
        remove(made)


def remove(tree: Path) -> bool:
    """Remove a directory with all that is in it; False if something is left. Links in it are not followed."""

    def permit(_: Callable[..., Any], path: str, __: object) -> None:
        """Make directories writable that the command made read-only; they are removed in the next round."""
        with suppress(OSError):
            parent = Path(path).parent
            for one in (parent, Path(path)):
                if one.is_relative_to(tree) and stat.S_ISDIR(one.lstat().st_mode):
                    one.chmod(0o700)

    for _ in range(50):
        if not os.path.lexists(tree):
            return True
        shutil.rmtree(tree, onerror=permit)
    return not os.path.lexists(tree)


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
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not a file")
    # Between `stat` and `open` it may become a link, which is not followed, or a pipe, which is not waited for.
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise ValueError("it is not a file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return content
