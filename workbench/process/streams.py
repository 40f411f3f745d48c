"""The standard input of a process, and the log file to which its output is appended."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def open_input(text: str) -> Iterator[IO[bytes]]:
    """An unnamed file that holds the text as UTF-8; unlike a pipe, writing it does not wait for a reader.

    It is in memory where the system supports that; a confined process then cannot open it again as `/dev/stdin`.
    """
    with os.fdopen(os.memfd_create("stdin"), "r+b") if hasattr(os, "memfd_create") else _open_temporary() as file:
        file.write(text.encode())
        file.seek(0)
        yield file


@contextmanager
def open_log(log: Path) -> Iterator[int]:
    """A descriptor that appends to a log, which only its owner may read. Creates the directory."""
    log.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    descriptor = os.open(log, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_temporary() -> IO[bytes]:
    return tempfile.TemporaryFile()
