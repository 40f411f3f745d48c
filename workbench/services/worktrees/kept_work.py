"""The work of attempts that did not complete their task: kept as references, and taken off their worktree's branch.

All of it, committed or not, becomes one commit at `refs/workbench/attempts/<task>/<attempt>` in the user's repository,
imported with all checks. Then the branch and the files are as they were when the attempt began.
"""

from __future__ import annotations

import logging
import shutil
from asyncio import to_thread

from workbench.errors import Conflict, WorkbenchError
from workbench.git import Checkout, Repository
from workbench.model import SECOND
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty
from workbench.process import WriterLock
from workbench.rules import integration
from workbench.services.tasks import attempts
from workbench.services.tasks.rows import attempt_ref, require_line
from workbench.services.worktrees.imports import LOOK_SECONDS, import_branch
from workbench.services.worktrees.places import (
    COMMITTER,
    add_files,
    checkout_of,
    exclusive,
    fill_submodules,
    is_there,
    place_of,
)
from workbench.services.worktrees.rescue import MOST_REFERENCES, move_to_trash, only_there, stamp
from workbench.services.worktrees.rows import find_worktree
from workbench.state.settings import Settings
from workbench.store.base import Row, Tx

CANNOT_START = (125, 126, 127)
"""Exit statuses of the launcher of a box for a command that did not run."""
RETRY_SECONDS = 30
ROOM = 1_000_000
"""Bytes; with less, git may fail for want of room."""
WATCH_SECONDS = 0.5
"""How soon supervisors are looked at again that have not ended yet: their end is no event."""

log = logging.getLogger(__name__)


def writer_lock(settings: Settings, worktree: str) -> WriterLock:
    """The lock of a worktree's one writer."""
    return WriterLock(settings.writers / f"{worktree}.lock")


async def put_away(ctx: Ctx, repository: Repository, work: Row, *, briefly: bool = False) -> str | None:
    """Keep what an attempt made, and return its worktree to where it began; the problem, if it is kept elsewhere.

    Call with exclusive access, and only when nothing of the attempt runs. After an error or a crash, call it again: a
    worktree that git cannot keep for what is in it is moved to the trash then, also one that holds git up.

    Args:
        briefly: do not wait for git as long as a large worktree may need.

    Raises:
        WorkbenchError: it is not put away, and the attempt says why.
    """
    limit = LOOK_SECONDS if briefly or not work["problem"] else None
    row = await ctx.read(lambda tx: find_worktree(tx, work["worktree"]))
    if row is None or not await to_thread(is_there, place_of(ctx, row)):
        if row is not None and row["status"] in integration.OPEN and work["problem"]:  # it was set aside
            await _recreate(ctx, repository, row, work)
        return f"The files of the worktree {work['worktree']} were removed. Its branch has what was imported before."
    try:
        checkout = await to_thread(checkout_of, ctx.settings, repository, place_of(ctx, row), limit=limit)
        problem = None if work["kept_commit"] else await _keep(ctx, repository, row, checkout, work)
        if row["status"] in integration.OPEN:
            await to_thread(checkout.return_to, row["branch_name"], work["base_commit"])
            await to_thread(repository.return_branch, row["branch_name"], work["base_commit"])
            await import_branch(ctx, repository, row, limit=limit)
            await to_thread(fill_submodules, ctx.settings, repository, place_of(ctx, row), work["base_commit"])
    except WorkbenchError as error:
        is_held_up = error.code == "GIT_TIMEOUT" and limit is None
        is_to_blame = (is_held_up or _is_of_worktree(error)) and not await to_thread(_is_full, ctx, repository)
        if row["status"] in integration.OPEN and work["problem"] and is_to_blame:
            return await _set_aside(ctx, repository, row, work, error)
        reason = not_yet(error)
        await ctx.write(lambda tx: attempts.failed_to_keep(tx, work, reason))
        raise
    return problem


def _is_of_worktree(error: WorkbenchError) -> bool:
    """Whether git failed for the content of the worktree, and would fail again, as for a file name that it refuses."""
    if error.code == "REPOSITORY_DAMAGED":
        return True
    status = error.details.get("exit_code")
    return error.code == "GIT_FAILED" and not error.details.get("try_again") and status not in (None, *CANNOT_START)


async def _set_aside(ctx: Ctx, repository: Repository, row: Row, work: Row, error: WorkbenchError) -> str:
    """Move a worktree that git cannot keep to the trash, and recreate it where the attempt began.

    Returns a sentence that says why, and where the files are.
    """
    place = place_of(ctx, row)
    into = await to_thread(move_to_trash, ctx.settings.trash, place, stamp(ctx))
    ctx.local.repositories.status_cache.forget(place.path)
    await _recreate(ctx, repository, row, work)
    return f"Git could not keep what it made ({error.message}) All files of the worktree as it was are in {into}."


async def _recreate(ctx: Ctx, repository: Repository, row: Row, work: Row) -> None:
    """Make a worktree again that was moved away, as it was where an attempt began. If that fails, call it again."""
    branch, base = row["branch_name"], work["base_commit"]
    await to_thread(repository.return_branch, branch, base)
    await to_thread(add_files, ctx.settings, repository, place_of(ctx, row), branch, base, existing=True)
    await import_branch(ctx, repository, row)


def _is_full(ctx: Ctx, repository: Repository) -> bool:
    """Whether a disk has no room for what git writes, which git does not always say."""
    return any(shutil.disk_usage(place).free < ROOM for place in (ctx.settings.home, repository.git_dir))


def not_yet(error: WorkbenchError) -> str:
    """The problem that is shown of an attempt whose work could not be put away."""
    return f"What it made is not put away, which is tried again: {error.code}: {error.message}"


async def _keep(ctx: Ctx, repository: Repository, row: Row, checkout: Checkout, work: Row) -> str | None:
    """Keep what an attempt made, if anything; the problem, if only its worktree's repository can have it."""
    task_id, attempt, branch = work["task_id"], work["attempt"], f"refs/heads/{row['branch_name']}"
    ref, message = (
        attempt_ref(task_id, attempt),
        f"Task {task_id}, attempt {attempt}, by {work['agent']}: not completed",
    )
    others = await to_thread(only_there, repository, checkout, besides="refs/workbench/")
    besides = list(dict.fromkeys([branch, *others]))[:MOST_REFERENCES]
    commit = await to_thread(checkout.keep_all, ref, besides, message, COMMITTER)
    if commit in (None, work["base_commit"]):
        return None
    try:
        kept = await to_thread(repository.import_ref, checkout, ref, into=ref, max_bytes=ctx.settings.max_import_bytes)
    except Conflict as error:
        return f"{error.message} It is kept as {ref} in {place_of(ctx, row).git_dir}."
    size = await to_thread(repository.size_of, work["base_commit"], kept)
    await ctx.write(lambda tx: attempts.keep(tx, work, kept, size.commits, size.files, size.bytes))
    return None


def close(tx: Tx, task_id: int, attempt: int, problem: str | None = None) -> str | None:
    """Record that the work of an attempt is put away; the reference that keeps it, if it made anything."""
    if not attempts.close(tx, task_id, attempt, problem):
        return None
    work = attempts.find_work(tx, task_id, attempt)
    if work is None or not work["kept_commit"]:
        return None
    session, ref = require_line(tx, task_id)["session_id"], attempt_ref(task_id, attempt)
    data = {name: work[name] for name in ("attempt", "worktree", "commits", "files", "bytes")}
    tx.emit("task.work_kept", f"task:{task_id}", session=session, ref=ref, commit=work["kept_commit"], **data)
    return ref


@duty("keeping the work of ended attempts", 5.0, wakes=True)
async def put_away_ended(ctx: Ctx, *, briefly: bool = False) -> float | None:
    """Put away the work of the attempts that have ended and whose supervisor has too, also after a crash.

    While there are such attempts, their supervisors are looked at again soon.
    """
    tried_before = ctx.store.now() - RETRY_SECONDS * SECOND
    ended = await ctx.read(lambda tx: attempts.ended(tx, ctx.local.machine.only, tried_before))
    for work in ended:
        try:
            await ctx.local.repositories.shielded(_put_away_alone(ctx.of(SYSTEM), work, briefly))
        except WorkbenchError as error:
            log.warning("task %s, attempt %s: %s", work["task_id"], work["attempt"], error)
    return WATCH_SECONDS if ended else None


async def _put_away_alone(ctx: Ctx, work: Row, briefly: bool) -> None:
    async with exclusive(ctx) as repository:
        await put_away_if_dead(ctx, repository, work, briefly=briefly)


async def put_away_worktree(ctx: Ctx, repository: Repository, worktree: str, *, briefly: bool = False) -> None:
    """Put away the work of the ended attempts in a worktree. Call with exclusive access."""
    for work in await ctx.read(lambda tx: attempts.open_in(tx, worktree)):
        if work["ended_at"] is not None:
            await put_away_if_dead(ctx, repository, work, briefly=briefly)


async def require_put_away(ctx: Ctx, repository: Repository, worktree: str) -> None:
    """Put away the work of the ended attempts in a worktree, so that nothing merges it. Call with exclusive access.

    Raises:
        Conflict: ``WORK_NOT_PUT_AWAY``: that of an attempt is still on the branch or among the files.
    """
    for work in await ctx.read(lambda tx: attempts.open_in(tx, worktree)):
        if work["ended_at"] is None:
            continue
        try:
            await put_away_if_dead(ctx, repository, work)
        except WorkbenchError as error:
            raise _in_the_way(work, f"{error.code}: {error.message}") from error
        now = await ctx.read(lambda tx, of=work: attempts.find_work(tx, of["task_id"], of["attempt"]))  # type: ignore[misc]
        if now is not None and now["state"] == "open":
            raise _in_the_way(work, "what it started has not ended.")


def _in_the_way(work: Row, why: str) -> Conflict:
    name, task_id, attempt = work["worktree"], work["task_id"], work["attempt"]
    return Conflict(
        "WORK_NOT_PUT_AWAY",
        f"Attempt {attempt} at task {task_id} by {work['agent']} did not complete its task, and what it made is still "
        f"in the worktree {name}: {why} It is put away first; that is tried again every {RETRY_SECONDS} seconds and "
        f"whenever you ask. If it never succeeds, `workbench worktrees discard {name} --force` saves its files.",
        task_id=task_id,
        attempt=attempt,
    )


async def put_away_if_dead(ctx: Ctx, repository: Repository, work: Row, *, briefly: bool = False) -> None:
    """Put away the work of an ended attempt, unless its supervisor runs. Call with exclusive access.

    Args:
        work: as it was when the caller chose it. Nothing is done if that was tried meanwhile: git may be held up there.
    """
    task_id, attempt = work["task_id"], work["attempt"]
    now = await ctx.read(lambda tx: attempts.find_work(tx, task_id, attempt))
    lock = writer_lock(ctx.settings, work["worktree"])
    with lock.held() as is_free:
        if not is_free or now is None or (now["state"], now["tried_at"]) != ("open", work["tried_at"]):
            return
        try:
            await to_thread(lock.end_rest)
        except WorkbenchError as error:
            reason = not_yet(error)
            await ctx.write(lambda tx: attempts.failed_to_keep(tx, work, reason))
            raise
        problem = await put_away(ctx, repository, now, briefly=briefly)
        lock.forget()
    await ctx.write(lambda tx: close(tx, task_id, attempt, problem))
