"""What the files that runs made contain, for a panel or a cell to show. Only recorded files are ever opened.

The path that was recorded has no symbolic links in it, and none that was put there since is followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from io import BufferedReader
from pathlib import Path

from workbench.errors import NotFound
from workbench.model import Level
from workbench.ops import Ctx, op
from workbench.rules.naming import Name
from workbench.services.runs.previews import FilePreview, opened, preview
from workbench.services.runs.run import Artifact, RunRef, find
from workbench.store.base import Reader
from workbench.store.queries import beside

SQL = beside(__file__)

VERIFIED_BYTES = 50_000_000
"""Of larger files only the size is compared with what was recorded."""


class ArtifactContent(FilePreview, Artifact):
    """What is shown of an artifact.

    `changed`: the file is not as it was when it was recorded (null: too large to be compared).
    """

    changed: bool | None


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def get_run_artifact(ctx: Ctx, run_id: RunRef, name: Name) -> ArtifactContent:
    """Get what an artifact of a run contains, as far as it can be shown: a picture, the first rows of a table, text."""
    recorded = await ctx.read(lambda tx: _recorded(tx, ctx, run_id, name))
    return await asyncio.to_thread(_read, ctx.settings.project, recorded)


def _recorded(tx: Reader, ctx: Ctx, ref: int | str, name: str) -> Artifact:
    run = find(tx, ctx.caller, ref)
    row = tx.one(SQL.artifact, run=run["id"], name=name)
    if row is None:
        raise NotFound("ARTIFACT_NOT_FOUND", f"The run {run['id']} has no artifact {name!r}. get_run lists them.")
    return Artifact(**row)


def _read(project: Path, recorded: Artifact) -> ArtifactContent:
    with opened(project, recorded.path) as file:
        shown = preview(file, recorded.name, recorded.media_type)
        return ArtifactContent(**vars(recorded), **shown, changed=_is_changed(file, recorded))


def _is_changed(file: BufferedReader, recorded: Artifact) -> bool | None:
    size = os.fstat(file.fileno()).st_size
    if size != recorded.bytes:
        return True
    if size > VERIFIED_BYTES:
        return None
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest() != recorded.sha256
