"""Contents of the files that agents made for their tasks, for a panel or a cell to show.

Agents name them as they like: only files below the task's worktree are opened, or below the project if no attempt had a
worktree, and no symbolic link is followed.
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

from workbench.errors import Hint, NotFound, Unavailable
from workbench.git import Repository
from workbench.model import Level
from workbench.ops import Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.tasks import artifacts as rules
from workbench.services.attempts.sent_artifacts import CONTENT, place_of
from workbench.services.runs.previews import FilePreview, opened, preview, unreadable
from workbench.services.tasks import attempts
from workbench.services.tasks.rows import readable_row, task_of
from workbench.store.base import Reader

MOST_BYTES = 50_000_000
"""Larger files are not taken from a commit."""

Source = Literal["commit", "sent", "worktree", "project"]


class TaskArtifactContent(FilePreview):
    """The content of a file among the artifacts of a task, as far as it can be shown.

    `source`: where it was read: at the commit that completed the task, among the files that a worker on another machine
    has sent, in the task's worktree, or in the project. `path` is relative to that.
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
    """A task whose artifact is wanted. `commit` completed it; `worktree` is where its files are, and `sent` where the
    artifact is if it was sent."""

    id: int
    commit: str | None
    worktree: Path | None
    sent: Path


@op(allow=Level.OPERATOR, reads=True, tool=False, command="task")
async def get_task_artifact(
    ctx: Ctx,
    task_id: TaskId,
    name: Annotated[
        str, Field(min_length=1, max_length=4_096, description="A file among the task's artifacts; see get_task.")
    ],
) -> TaskArtifactContent:
    """Get what a file that a task made contains, as far as it can be shown: a picture, the first rows of a table, text.

    It is read at the commit that completed the task, or else where a worker on another machine has sent it, or else in
    the worktree that it was done in, or else, if in none, in the project.
    """
    task = await ctx.read(lambda tx: _task(tx, ctx, task_id, name))
    repository = await ctx.local.repositories.open() if task.commit else None
    return await to_thread(_read, ctx.settings.project, repository, task, name)


def _task(tx: Reader, ctx: Ctx, task_id: int, name: str) -> _Task:
    task = task_of(tx, readable_row(tx, ctx.caller, task_id))
    if name not in task.artifacts or rules.kind(name) != "file":
        raise NotFound(
            "ARTIFACT_NOT_FOUND", f"The task {task_id} has no file {name!r} among its artifacts.", Hint("get_task")
        )
    if (machine := attempts.last_machine(tx, task_id)) is not None:
        ctx.local.machine.require(machine, f"What task {task_id} made")
    done_in = task.attempts[-1].worktree if task.attempts else None
    name_of_worktree = task.worktree or done_in
    worktree = ctx.settings.worktree(name_of_worktree) if name_of_worktree else None
    last = task.attempts[-1].attempt if task.attempts else 0
    return _Task(task_id, rules.commit(task.artifacts), worktree, place_of(ctx.settings.artifacts, task_id, last, name))


def _read(project: Path, repository: Repository | None, task: _Task, name: str) -> TaskArtifactContent:
    """The first place that has the file.

    Raises:
        Unavailable: ``ARTIFACT_UNREADABLE``.
    """
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    with _open_artifact(project, repository, task, name) as (source, path, file):
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
def _open_artifact(
    project: Path, repository: Repository | None, task: _Task, name: str
) -> Iterator[tuple[Source, str, BinaryIO]]:
    """The place of a file, its path there, and the file, open at its beginning."""
    problems = []
    with ExitStack() as stack:
        at_commit = rules.place(name, task.worktree or project)
        if repository and task.commit and at_commit:
            file = stack.enter_context(tempfile.TemporaryFile())
            if repository.copy_blob(task.commit, at_commit, file, MOST_BYTES):
                file.seek(0)
                yield "commit", at_commit, file
                return
        if (task.sent / CONTENT).is_file():
            yield "sent", name, stack.enter_context(opened(task.sent, CONTENT))
            return
        for source, root in _directories(project, task):
            if (path := rules.place(name, root)) is None:
                continue
            try:
                artifact = stack.enter_context(opened(root, path))
            except Unavailable as error:
                problems.append(error)
                continue
            yield source, path, artifact
            return
    where = "the worktree of the task" if task.worktree else "the project"
    raise problems[0] if problems else unreadable(name, f"it is not in {where}")


def _directories(project: Path, task: _Task) -> Iterator[tuple[Source, Path]]:
    yield ("worktree", task.worktree) if task.worktree else ("project", project)
