"""Removes directories that workers could write: their depth and modes are not trusted."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from workbench.system import uninterrupted


def remove_tree(path: Path) -> bool:
    """Remove a directory with all that is in it, or a file; False if something is left. Links are not followed.

    Directories that their owner may not enter, and ones nested deeper than Python can follow, are removed too.
    """
    with suppress(OSError, RecursionError):
        _remove(path)
    if os.path.lexists(path):
        for command in (["chmod", "-R", "u+rwx", "--"], ["rm", "-rf", "--"]):
            uninterrupted.run([*command, str(path)])
    return not os.path.lexists(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
