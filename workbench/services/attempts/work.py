"""The kept work of attempts that did not complete their task."""

from __future__ import annotations

from asyncio import to_thread
from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import Int64, Level, Wire
from workbench.ops import Ctx, op
from workbench.ops.parameters import TaskId
from workbench.services.tasks import attempts
from workbench.services.tasks.rows import attempt_ref, readable_row
from workbench.services.worktrees.status import FileDifference
from workbench.store.base import Reader, Row

AttemptNumber = Annotated[Int64, Field(description="The number of the attempt; see get_task.")]


class AttemptDiff(Wire):
    """The kept changes of an attempt that did not complete its task."""

    task_id: int
    attempt: int
    ref: str
    base_commit: str
    commit: str
    files: list[FileDifference]


@op(allow=Level.READ, reads=True, command="task")
async def get_attempt_diff(
    ctx: Ctx,
    task_id: TaskId,
    attempt: AttemptNumber,
    path: Annotated[str | None, Field(max_length=4_096, description="Only this file or directory.")] = None,
) -> AttemptDiff:
    """Get what an attempt made that did not complete its task, file by file, as unified diffs."""

    def query(tx: Reader) -> Row:
        readable_row(tx, ctx.caller, task_id)
        return require_kept(tx, ctx, task_id, attempt)

    work = await ctx.read(query)
    repository = await ctx.local.repositories.open()
    base, commit = work["base_commit"], work["kept_commit"]
    files = await to_thread(repository.diff, base, commit, path=path, max_bytes=ctx.settings.max_diff_bytes)
    return AttemptDiff(
        task_id=task_id,
        attempt=attempt,
        ref=attempt_ref(task_id, attempt),
        base_commit=base,
        commit=commit,
        files=[FileDifference(**asdict(file)) for file in files],
    )


def require_kept(tx: Reader, ctx: Ctx, task_id: int, attempt: int) -> Row:
    """The work of an attempt, which is kept here.

    Raises:
        NotFound: ``NO_KEPT_WORK``. Conflict: ``ON_ANOTHER_MACHINE``.
    """
    work = attempts.find_work(tx, task_id, attempt)
    if work is None or not work["kept_commit"]:
        raise NotFound(
            "NO_KEPT_WORK",
            f"Nothing is kept of attempt {attempt} at task {task_id}.",
            Hint("get_task", "`{}` lists them.", "{} lists them."),
        )
    ctx.local.machine.require(work["machine"], f"What attempt {attempt} at task {task_id} made")
    return work
