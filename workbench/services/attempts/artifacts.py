"""What the files that agents made for their tasks contain, for a panel or a cell to show.

Agents name them as they like: only files below the task's worktree and the project are opened, and no symbolic link is
followed.
"""

from __future__ import annotations

import mimetypes
import os
import tempfile
from asyncio import to_thread
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

from pydantic import Field

from workbench.errors import NotFound, Unavailable
from workbench.git import Repository
from workbench.model import Level
from workbench.ops import Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.tasks import artifacts as rules
from workbench.services.runs.previews import FilePreview, opened, preview, unreadable
from workbench.services.tasks.rows import readable_row, task_of
from workbench.services.worktrees.rows import find_worktree
from workbench.store.base import Reader

MOST_BYTES = 50_000_000
"""Larger files are not taken from a commit."""

Source = Literal["commit", "worktree", "project"]


class TaskArtifactContent(FilePreview):
    """What is shown of a file among the artifacts of a task.

    `source`: where it was read: at the commit that completed the task, in the task's worktree, or in the project.
    `path` is relative to that.
    """

    task_id: int
    name: str
    source: Source
    commit: str | None
    path: str
    media_type: str
    bytes: int


@dataclass(frozen=True)
class _Task:
    """A task whose artifact is wanted. `commit` completed it; `worktree` is where its files are."""

    id: int
    commit: str | None
    worktree: Path | None


@op(allow=Level.OPERATOR, reads=True, tool=False)
async def get_task_artifact(
    ctx: Ctx,
    task_id: TaskId,
    name: Annotated[
        str, Field(min_length=1, max_length=4_096, description="A file among the task's artifacts; see get_task.")
    ],
) -> TaskArtifactContent:
    """Get what a file that a task made contains, as far as it can be shown: a picture, the first rows of a table, text.

    It is read at the commit that completed the task, or else in the task's worktree, or else in the project.
    """
    task = await ctx.read(lambda tx: _task(tx, ctx, task_id, name))
    repository = await ctx.repositories.open() if task.commit else None
    return await to_thread(_read, ctx.settings.project, repository, task, name)


def _task(tx: Reader, ctx: Ctx, task_id: int, name: str) -> _Task:
    task = task_of(tx, readable_row(tx, ctx.caller, task_id))
    if name not in task.artifacts or rules.kind(name) != "file":
        raise NotFound(
            "ARTIFACT_NOT_FOUND", f"The task {task_id} has no file {name!r} among its artifacts. get_task lists them."
        )
    worktree = find_worktree(tx, task.worktree) if task.worktree else None
    return _Task(task_id, rules.commit(task.artifacts), ctx.settings.worktrees / worktree["name"] if worktree else None)


def _read(project: Path, repository: Repository | None, task: _Task, name: str) -> TaskArtifactContent:
    """The first place that has the file.

    Raises:
        Unavailable: ``ARTIFACT_UNREADABLE``.
    """
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    with _found(project, repository, task, name) as (source, path, file):
        return TaskArtifactContent(
            **preview(file, name, media_type),
            task_id=task.id,
            name=name,
            source=source,
            commit=task.commit if source == "commit" else None,
            path=path,
            media_type=media_type,
            bytes=os.fstat(file.fileno()).st_size,
        )


@contextmanager
def _found(
    project: Path, repository: Repository | None, task: _Task, name: str
) -> Iterator[tuple[Source, str, BinaryIO]]:
    """Where a file is, its path there, and the file, open at its beginning."""
    problems = []
    with ExitStack() as stack:
        at_commit = rules.place(name, task.worktree or project)
        if repository and task.commit and at_commit:
            file = stack.enter_context(tempfile.TemporaryFile())
            if repository.copy_blob(task.commit, at_commit, file, MOST_BYTES):
                file.seek(0)
                yield "commit", at_commit, file
                return
        for source, root in _directories(project, task):
            if (path := rules.place(name, root)) is None:
                continue
            try:
                found = stack.enter_context(opened(root, path))
            except Unavailable as error:
                problems.append(error)
                continue
            yield source, path, found
            return
    raise problems[0] if problems else unreadable(name, "it is not in the project")


def _directories(project: Path, task: _Task) -> Iterator[tuple[Source, Path]]:
    if task.worktree:
        yield "worktree", task.worktree
    yield "project", project
