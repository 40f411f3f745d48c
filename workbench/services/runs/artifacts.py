"""The files that runs made: they stay where they are, are recorded with their digests, and can be shown.

Only recorded files are ever opened. The path that was recorded has no symbolic links in it, and none that was put there
since is followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import os
from io import BufferedReader
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput, Conflict, Hint, NotFound, Unavailable
from workbench.model import Level
from workbench.ops import Ctx, op
from workbench.rules.naming import Name
from workbench.services.runs.ending import Tries, require_try
from workbench.services.runs.previews import FilePreview, opened, preview
from workbench.services.runs.run import Artifact, RunRef, find
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

VERIFIED_BYTES = 50_000_000
"""Of larger files only the size is compared with what was recorded."""


class ArtifactContent(FilePreview, Artifact):
    """What is shown of an artifact.

    `changed`: the file is not as it was when it was recorded (null: too large to be compared).
    """

    changed: bool | None


@op(allow=Level.OPERATOR, tool=False)
async def add_run_artifact(
    ctx: Ctx,
    run_id: RunRef,
    path: Annotated[
        str, Field(min_length=1, max_length=1_000, description="A file in the project, relative to it or absolute.")
    ],
    name: Annotated[Name | None, Field(description="What it is called; null: the name of the file.")] = None,
    media_type: Annotated[
        str | None,
        Field(max_length=100, pattern=r"^[\w.+-]+/[\w.+-]+$", description="null: what its name suggests."),
    ] = None,
    tries: Tries = None,
) -> Artifact:
    """Record a file that a run made. It stays where it is; its size and SHA-256 are recorded as they are now.

    An artifact replaces the one of the run with the same name.
    """
    file, place = await asyncio.to_thread(locate_file, ctx.settings.project, path)
    size, sha256 = await asyncio.to_thread(_measure, file)
    values = {
        "name": ctx.secrets.masked(name or file.name),
        "path": ctx.secrets.masked(place),
        "media_type": media_type or mimetypes.guess_type(file.name)[0] or "application/octet-stream",
        "bytes": size,
        "sha256": sha256,
    }
    limit = ctx.settings.max_run_artifacts

    def change(tx: Tx) -> Artifact:
        row = find(tx, ctx.caller, run_id)
        require_try(row, tries)
        ctx.local.machine.require(row["machine"], f"The run {row['id']}")
        tx.run(SQL.add, values, run=row["id"], now=tx.now)
        counted = tx.one(SQL.count, run=row["id"])
        assert counted is not None
        if counted["n"] > limit:
            raise Conflict(
                "TOO_MANY_ARTIFACTS",
                f"The run {row['id']} may have {limit} artifacts (max_run_artifacts). Put more files into an archive.",
                limit=limit,
            )
        tx.emit(
            "run.artifact_added",
            f"run:{row['id']}",
            session=row["session_id"],
            name=values["name"],
            path=values["path"],
        )
        return Artifact(**values, added_at=tx.now)

    return await ctx.write(change)


def locate_file(project: Path, path: str) -> tuple[Path, str]:
    """A file in the project, and its path relative to it."""
    try:
        file = (project / path).resolve()
        exists = file.is_file()
    except (OSError, ValueError, RuntimeError):
        exists = False
    if not exists:
        raise NotFound("ARTIFACT_NOT_FOUND", f"There is no file {path!r} in the project.")
    if not file.is_relative_to(project):
        raise BadInput("ARTIFACT_OUTSIDE_PROJECT", f"{path!r} is not in the project. Copy it there first.")
    return file, file.relative_to(project).as_posix()


def _measure(file: Path) -> tuple[int, str]:
    """The size and the SHA-256 of a file."""
    try:
        with file.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            return stream.tell(), sha256
    except OSError as error:
        raise Unavailable("ARTIFACT_UNREADABLE", f"The artifact cannot be read: {error.strerror}.") from None


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def get_run_artifact(ctx: Ctx, run_id: RunRef, name: Name) -> ArtifactContent:
    """Get what an artifact of a run contains, as far as it can be shown: a picture, the first rows of a table, text."""
    artifact = await ctx.read(lambda tx: _find_artifact(tx, ctx, run_id, name))
    return await asyncio.to_thread(_read_content, ctx.settings.project, artifact)


def _find_artifact(tx: Reader, ctx: Ctx, ref: int | str, name: str) -> Artifact:
    run = find(tx, ctx.caller, ref)
    ctx.local.machine.require(run["machine"], f"The run {run['id']}")
    row = tx.one(SQL.artifact, run=run["id"], name=name)
    if row is None:
        raise NotFound("ARTIFACT_NOT_FOUND", f"The run {run['id']} has no artifact {name!r}.", Hint("get_run"))
    return Artifact(**row)


def _read_content(project: Path, artifact: Artifact) -> ArtifactContent:
    with opened(project, artifact.path) as file:
        shown = preview(file, artifact.name, artifact.media_type)
        return ArtifactContent(**vars(artifact), **shown, changed=_is_changed(file, artifact))


def _is_changed(file: BufferedReader, artifact: Artifact) -> bool | None:
    size = os.fstat(file.fileno()).st_size
    if size != artifact.bytes:
        return True
    if size > VERIFIED_BYTES:
        return None
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest() != artifact.sha256
