"""What the files that runs made contain, for a panel or a cell to show. Only recorded files are ever opened.

The path that was recorded has no symbolic links in it; it is opened one directory after the other, so that none that
was put there since is followed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PurePosixPath

from workbench.errors import NotFound, Unavailable
from workbench.model import Level
from workbench.ops import Ctx, op
from workbench.rules.naming import Name
from workbench.rules.runs import previews
from workbench.rules.runs.previews import Preview
from workbench.services.runs.run import Artifact, RunId, find
from workbench.store.base import Reader
from workbench.store.queries import beside

SQL = beside(__file__)

VERIFIED_BYTES = 50_000_000
"""Of larger files only the size is compared with what was recorded."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ArtifactContent(Artifact):
    """What is shown of an artifact.

    `form`: a picture has `data` in base64 and its `picture_type`; a table `columns` and the first `rows`; markdown,
    json and text have `text`; a file that cannot be shown has none of these. `cut`: there is more of it than this.
    `changed`: the file is not as it was when it was recorded (null: too large to be compared).
    """

    form: previews.Form
    picture_type: str | None
    data: str | None
    text: str | None
    columns: list[str]
    rows: list[list[str]]
    cut: bool
    changed: bool | None


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def get_run_artifact(ctx: Ctx, run_id: RunId, name: Name) -> ArtifactContent:
    """Get what an artifact of a run contains, as far as it can be shown: a picture, the first rows of a table, text."""
    recorded = await ctx.read(lambda tx: _recorded(tx, ctx, run_id, name))
    return await asyncio.to_thread(_read, ctx.settings.project, recorded)


def _recorded(tx: Reader, ctx: Ctx, run_id: int, name: str) -> Artifact:
    find(tx, ctx.caller, run_id)
    row = tx.one(SQL.artifact, run=run_id, name=name)
    if row is None:
        raise NotFound("ARTIFACT_NOT_FOUND", f"The run {run_id} has no artifact {name!r}. get_run lists them.")
    return Artifact(**row)


def _read(project: Path, recorded: Artifact) -> ArtifactContent:
    with _opened(project, recorded.path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(max(previews.TEXT_BYTES + 1, previews.PICTURE_BYTES if size <= previews.PICTURE_BYTES else 0))
        shown = previews.preview(recorded.name, recorded.media_type, head, size)
        if head.startswith(previews.PARQUET):
            shown = _parquet(file) or shown
        changed = _is_changed(file, size, recorded)
    return ArtifactContent(
        **vars(recorded),
        form=shown.form,
        picture_type=shown.media_type,
        data=base64.b64encode(head[:size]).decode() if shown.form == "picture" else None,
        text=shown.text,
        columns=shown.columns,
        rows=shown.rows,
        cut=shown.cut,
        changed=changed,
    )


@contextmanager
def _opened(project: Path, place: str) -> Iterator[BufferedReader]:
    """A file of the project, opened without following symbolic links.

    Raises:
        Unavailable: ``ARTIFACT_UNREADABLE``.
    """
    *folders, name = PurePosixPath(place).parts
    folder = -1
    try:
        folder = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in folders:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        opened = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        raise _unreadable(place, error.strerror or "it cannot be opened") from None
    finally:
        if folder >= 0:
            os.close(folder)
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise _unreadable(place, "it is not a regular file")
        yield file


def _unreadable(place: str, reason: str) -> Unavailable:
    return Unavailable("ARTIFACT_UNREADABLE", f"The artifact {place!r} cannot be read: {reason}.")


def _is_changed(file: BufferedReader, size: int, recorded: Artifact) -> bool | None:
    if size != recorded.bytes:
        return True
    if size > VERIFIED_BYTES:
        return None
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest() != recorded.sha256


def _parquet(file: BufferedReader) -> Preview | None:
    """The first rows of a Parquet file; None if it is none."""
    import duckdb

    try:
        with duckdb.connect(config={"threads": 1, "memory_limit": "500MB"}) as db:
            found = db.execute("SELECT * FROM read_parquet(?) LIMIT ?", [f"/dev/fd/{file.fileno()}", previews.ROWS + 1])
            columns = [column[0] for column in found.description or ()]
            return previews.cells(columns, [list(row) for row in found.fetchall()], cut=False)
    except duckdb.Error:
        return None
