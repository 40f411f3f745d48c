"""Writes files atomically, so that no crash or other writer leaves a partial file; reads the ends of files."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from workbench.errors import Unavailable

EVERYBODY = 0o666
"""The umask decides who may read it."""


def replace(path: Path, text: str, mode: int = EVERYBODY) -> None:
    """Replace a file atomically by one with a text, in UTF-8; creates missing directories.

    If several writers do this at once, the last one wins.

    Args:
        mode: the mode of the new file, before the umask. The mode of a replaced file is not kept.

    Raises:
        Unavailable: ``PROJECT_UNWRITABLE``; the file is unchanged.
    """
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(fresh, text, mode)
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise Unavailable("PROJECT_UNWRITABLE", f"{path} cannot be written: {error.strerror}.") from error


def tail(path: Path, size: int) -> str:
    """The last `size` bytes of a file, as text.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        return file.read(size).decode("utf-8", "replace")


def _write(fresh: Path, text: str, mode: int) -> None:
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
