"""What is shown of a file, and how it is opened: one directory after the other, so no symbolic link is followed."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from workbench.errors import Unavailable
from workbench.model import Wire
from workbench.rules.runs import previews
from workbench.rules.runs.previews import Preview

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FilePreview(Wire):
    """What is shown of a file.

    `form`: a picture has `data` in base64 and its `picture_type`; a table `columns` and the first `rows`; markdown,
    json and text have `text`; a file that cannot be shown has none of these. `cut`: there is more of it than this.
    """

    form: previews.Form
    picture_type: str | None
    data: str | None
    text: str | None
    columns: list[str]
    rows: list[list[str]]
    cut: bool


@contextmanager
def opened(root: Path, place: str) -> Iterator[BufferedReader]:
    """Open a file below a directory.

    Args:
        place: its path from there, without ``..``.

    Raises:
        Unavailable: ``ARTIFACT_UNREADABLE``.
    """
    *folders, name = PurePosixPath(place).parts
    folder = -1
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in folders:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        raise unreadable(place, error.strerror or "it cannot be opened") from None
    finally:
        if folder >= 0:
            os.close(folder)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):  # before Python opens it, which refuses a directory in its own words
        os.close(descriptor)
        raise unreadable(place, "it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def unreadable(place: str, reason: str) -> Unavailable:
    """The error for an artifact that cannot be read."""
    return Unavailable("ARTIFACT_UNREADABLE", f"The artifact {place!r} cannot be read: {reason}.")


def preview(file: BinaryIO, name: str, media_type: str) -> dict[str, Any]:
    """The fields of `FilePreview` for an open file, which is at its beginning."""
    size = os.fstat(file.fileno()).st_size
    head = file.read(max(previews.TEXT_BYTES + 1, previews.PICTURE_BYTES if size <= previews.PICTURE_BYTES else 0))
    shown = previews.preview(name, media_type, head, size)
    if head.startswith(previews.PARQUET):
        shown = _parquet(file) or shown
    return {
        "form": shown.form,
        "picture_type": shown.media_type,
        "data": base64.b64encode(head[:size]).decode() if shown.form == "picture" else None,
        "text": shown.text,
        "columns": shown.columns,
        "rows": shown.rows,
        "cut": shown.cut,
    }


def _parquet(file: BinaryIO) -> Preview | None:
    """The first rows of a Parquet file; None if it is none."""
    import duckdb

    try:
        with duckdb.connect(config={"threads": 1, "memory_limit": "500MB"}) as db:
            cells = db.execute("SELECT * FROM read_parquet(?) LIMIT ?", [f"/dev/fd/{file.fileno()}", previews.ROWS + 1])
            columns = [column[0] for column in cells.description or ()]
            return previews.cells(columns, [list(row) for row in cells.fetchall()], cut=False)
    except duckdb.Error:
        return None
