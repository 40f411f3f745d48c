"""Attempts that supervisors make in worktrees: each begins at a recorded commit, one at a time, and owns what follows.

A supervisor holds the worktree's lock (`workbench.process.WriterLock`) from before it begins an attempt until it has
finished it. One on a machine without a clone has a copy of the branch instead: nothing of its attempt is in the
worktree until it sends its commits. What an attempt made that did not complete its task is kept by
`workbench.services.worktrees.kept_work`.
"""

from __future__ import annotations

from asyncio import to_thread
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workbench.confinement import lending
from workbench.confinement.lending import Lent
from workbench.confinement.told import Translation
from workbench.errors import Conflict, Refused, Unavailable, WorkbenchError
from workbench.git import Checkout, Repository
from workbench.model import SECOND, Json, Level, Wire
from workbench.ops import Ctx, op
from workbench.ops.parameters import TaskId
from workbench.process import Writer
from workbench.rules import integration
from workbench.rules.failures import FailureKind
from workbench.services.attempts import checks
from workbench.services.attempts.work import AttemptNumber
from workbench.services.models import tokens
from workbench.services.resources import leases
from workbench.services.spawning import provider_keys
from workbench.services.tasks import attempts, progress
from workbench.services.tasks.attempts import AttemptEnding, Key, ToldUsage
from workbench.services.tasks.checks import terms_of
from workbench.services.tasks.rows import require_line
from workbench.services.tasks.task import TaskSummary
from workbench.services.worktrees import checkouts
from workbench.services.worktrees.checkouts import ReadCheckout
from workbench.services.worktrees.imports import import_branch
from workbench.services.worktrees.kept_work import close, put_away, require_put_away, writer_lock
from workbench.services.worktrees.places import COMMITTER, checkout_of, exclusive, is_there, place_of, worktree_gone
from workbench.services.worktrees.rows import require_worktree
from workbench.services.worktrees.update import bring_up_to_date
from workbench.store.base import Row, Tx

ASKS_FOR_ANOTHER = "exit status 75"
"""The class of the error of a command that asked for another attempt itself."""


class Begun(Wire):
    """An attempt that has begun.

    `base_commit`: where it begins; null outside of worktrees. `token`: for its command, if it was asked for. `note`:
    by how much its worktree is behind its target, and why; null: it is up to date. `checkout`: outside of worktrees,
    what its command may read; null: the project has no repository. `model_token`: with it, its command asks this
    server for models. `tells`: its program tells the server of its requests by OpenTelemetry. `hide`: paths of the
    project that its command may not read, because its check asks for that.
    `lent`: what its commands get of what it holds, and the locks of its devices; on a machine without a clone, nothing:
    its worker lends them what the attempt was `leased`.
    """

    base_commit: str | None
    note: str | None = None
    checkout: ReadCheckout | None = None
    token: str | None = None
    model_token: str | None = None
    tells: bool = False
    hide: list[str] = []
    lent: Lent = Lent()


@op(allow=Level.WORKER, tool=False)
async def begin_attempt(
    ctx: Ctx,
    task_id: TaskId,
    attempt: AttemptNumber,
    key: Key,
    worktree: Annotated[str | None, Field(description="Where the attempt is made; its lock is held.")] = None,
    with_token: Annotated[
        bool, Field(description="Make a token for the command, which ends with the attempt.")
    ] = False,
    with_models: Annotated[
        bool, Field(description="Make a token with which the command asks for models, too.")
    ] = False,
) -> Begun:
    """Begin an attempt as its supervisor: record where its worktree is, when nothing else is at work there.

    Until then it is refused with `WORKTREE_OCCUPIED`, which says what it waits for.
    """
    begun = await _enlist_and_begin(ctx, task_id, attempt, key, worktree)
    terms, leased = await ctx.read(
        lambda tx: (terms_of(tx, require_line(tx, task_id)), leases.leased_to(tx, task_id, attempt))
    )
    is_elsewhere = await ctx.read(lambda tx: attempts.is_elsewhere(tx, ctx.caller.agent))
    lent = Lent() if is_elsewhere else await to_thread(lending.lent, ctx.settings, leased)
    tells = with_token and ctx.settings.agent_telemetry
    begun = begun.model_copy(update={"tells": tells, "hide": terms.check.hide if terms.check else [], "lent": lent})
    providers = await provider_keys.of_agent(ctx, ctx.caller.agent) if with_models and ctx.caller.agent else {}
    if not with_token and not providers:
        return begun

    def issue(tx: Tx) -> Begun:
        row = progress.held(tx, ctx.caller, task_id, attempt)
        token = attempts.new_token(tx, row) if with_token else None
        model_token = tokens.issue(tx, task_id, attempt, providers) if providers else None
        return begun.model_copy(update={"token": token, "model_token": model_token})

    return await ctx.write(issue)


async def _enlist_and_begin(ctx: Ctx, task_id: int, attempt: int, key: str, worktree: str | None) -> Begun:
    def enlist(tx: Tx) -> Row:
        row = progress.held(tx, ctx.caller, task_id, attempt)
        attempts.enlist(tx, row, key)
        return row

    row = await ctx.write(enlist)
    if worktree is None:
        checkout = await checkouts.of_target(ctx)
        begun = await ctx.write(lambda tx: _begin(tx, ctx, task_id, attempt, None, None))
        return begun.model_copy(update={"checkout": checkout})
    if worktree != ctx.caller.worktree:
        raise Refused("FORBIDDEN", f"You work in {ctx.caller.worktree or 'no worktree'}, not in {worktree}.")
    try:
        return await ctx.local.repositories.shielded(_begin_in(ctx, task_id, attempt, worktree))
    except Conflict as error:
        if error.code == "WORKTREE_OCCUPIED":
            reason = error.message
            await ctx.write(lambda tx: attempts.wait(tx, row, reason))
        raise
    except Unavailable as error:
        if error.code not in _UNUSABLE:
            raise
        raise Conflict("WORKTREE_UNUSABLE", f"The worktree {worktree} cannot be used: {error.message}") from error


_UNUSABLE = ("GIT_FAILED", "GIT_TIMEOUT", "REPOSITORY_DAMAGED", "WORKTREE_GONE")
"""Errors of a worktree itself: the same attempt would meet them again."""


def _begin(tx: Tx, ctx: Ctx, task_id: int, attempt: int, worktree: str | None, commit: str | None) -> Begun:
    row = progress.held(tx, ctx.caller, task_id, attempt)
    attempts.begin(tx, row, worktree, commit)
    progress.start(tx, row)
    work = attempts.find_work(tx, task_id, attempt)
    return Begun(base_commit=work["base_commit"] if work else None)


async def _begin_in(ctx: Ctx, task_id: int, attempt: int, name: str) -> Begun:
    async with exclusive(ctx) as repository:
        row = await ctx.read(lambda tx: require_worktree(tx, name))
        if row["status"] == integration.WorktreeState.INTEGRATING:
            raise _occupied(name, "it is being integrated", None)
        integration.step(name, row["status"], integration.WorktreeAction.DISCARD)  # it is open
        work = await ctx.read(lambda tx: attempts.find_work(tx, task_id, attempt))
        if work is not None and work["state"] == "open":  # the answer to an earlier request was lost
            return Begun(base_commit=work["base_commit"])
        if await ctx.read(lambda tx: attempts.is_elsewhere(tx, ctx.caller.agent)):
            await _require_unused(ctx, repository, name)
        else:
            await _require_room(ctx, repository, name, (task_id, attempt))
        commit, note = await bring_up_to_date(ctx, repository, row, await _base(ctx, repository, row))
        begun = await ctx.write(lambda tx: _begin(tx, ctx, task_id, attempt, name, commit))
        return begun.model_copy(update={"note": note})


async def _require_room(ctx: Ctx, repository: Repository, name: str, mine: tuple[int, int]) -> None:
    """Put away the ended attempts in a worktree, and refuse to begin another while anything is at work there.

    Raises:
        Conflict: ``WORKTREE_OCCUPIED``.
    """
    writer = await to_thread(writer_lock(ctx.settings, name).writer)
    is_mine = writer is not None and (writer.task_id, writer.attempt) == mine
    for other in await ctx.read(lambda tx: attempts.open_in(tx, name)):
        if other["ended_at"] is None:
            raise _occupied(name, f"{_named(other)} is under way there", other)
        if not is_mine:
            await _evict_if_late(ctx, name, other, writer)
            raise _occupied(name, f"{_named(other)} has ended, but what it started{_pid(writer)} has not", other)
        await _put_away_first(ctx, repository, name, other)
    if not is_mine:
        raise _occupied(name, f"another worker{_pid(writer)} is about to begin or to end there", None)


async def _require_unused(ctx: Ctx, repository: Repository, name: str) -> None:
    """Put away the ended attempts in a worktree, for one that is made elsewhere, of which nothing runs here.

    Raises:
        Conflict: ``WORKTREE_OCCUPIED``.
    """
    for other in await ctx.read(lambda tx: attempts.open_in(tx, name)):
        if other["ended_at"] is None:
            raise _occupied(name, f"{_named(other)} is under way there", other)
    try:
        await require_put_away(ctx, repository, name)
    except Conflict as error:
        raise _occupied(name, error.message, None) from error
    if (writer := await to_thread(writer_lock(ctx.settings, name).writer)) is not None:
        raise _occupied(name, f"a worker{_pid(writer)} of this machine is at work there", None)


async def _put_away_first(ctx: Ctx, repository: Repository, name: str, other: Row) -> None:
    """Put away an ended attempt, of which nothing runs: the caller holds the worktree's lock.

    Raises:
        Conflict: ``WORKTREE_OCCUPIED``.
    """
    try:
        problem = await put_away(ctx, repository, other)
    except WorkbenchError as error:
        raise _occupied(name, f"the work of {_named(other)} cannot be put away: {error.message}", other) from error
    await ctx.write(lambda tx: close(tx, other["task_id"], other["attempt"], problem))


async def _evict_if_late(ctx: Ctx, name: str, other: Row, writer: Writer | None) -> None:
    """End the supervisor of an ended attempt if it has had time to notice: it is stopped, or hangs.

    Raises:
        Conflict: ``WORKTREE_OCCUPIED``: it survives SIGKILL.
    """
    patience = 2 * ctx.settings.heartbeat_seconds + ctx.settings.terminate_grace_seconds
    late = ctx.store.now() - other["ended_at"] > patience * SECOND
    if not late or writer is None or (writer.task_id, writer.attempt) != (other["task_id"], other["attempt"]):
        return
    try:
        await to_thread(writer_lock(ctx.settings, name).evict)
    except WorkbenchError as error:
        raise _occupied(name, f"{_named(other)} cannot be ended: {error.message}", other) from error


def _named(work: Row) -> str:
    return f"attempt {work['attempt']} at task {work['task_id']} by {work['agent']}"


def _pid(writer: Writer | None) -> str:
    return f" (process {writer.process.pid})" if writer else ""


def _occupied(name: str, why: str, other: Row | None) -> Conflict:
    details = {"task_id": other["task_id"], "attempt": other["attempt"]} if other else {}
    return Conflict("WORKTREE_OCCUPIED", f"The worktree {name} is occupied: {why}.", **details)


async def _base(ctx: Ctx, repository: Repository, row: Row) -> str:
    """The commit that an attempt begins at: that of the branch, after what others left uncommitted is committed."""
    place = place_of(ctx, row)
    if not await to_thread(is_there, place):
        raise worktree_gone(place)
    checkout = await to_thread(checkout_of, ctx.settings, repository, place)
    await to_thread(_commit_leftovers, checkout, row["branch_name"])
    return await import_branch(ctx, repository, row)


def _commit_leftovers(checkout: Checkout, branch: str) -> None:
    """Commit what is uncommitted between attempts, such as a person's changes: it is not the next attempt's."""
    if checkout.uncommitted():
        checkout.commit_all("Changes that were made between tasks", COMMITTER)
    checkout.attach(branch)


@op(allow=Level.WORKER, tool=False)
async def finish_attempt(
    ctx: Ctx,
    task_id: TaskId,
    attempt: AttemptNumber,
    key: Key,
    outcome: Annotated[Literal["completed", "failed", "released"], Field(description="How it ended.")],
    result_data: Annotated[Json, Field(description="The result, as JSON.")] = None,
    artifacts: Annotated[tuple[str, ...], Field(max_length=1_000, description="What it made.")] = (),
    reason: Annotated[str, Field(max_length=10_000, description="Why it failed or is released.")] = "",
    retryable: Annotated[bool, Field(description="Whether another attempt could succeed.")] = True,
    error_class: Annotated[str | None, Field(max_length=200, description="Error class, such as ValueError.")] = None,
    still_running: Annotated[bool, Field(description="Something of it could not be ended.")] = False,
    failure: Annotated[FailureKind | None, Field(description="How the program of the agent failed.")] = None,
    until: Annotated[float | None, Field(description="When its provider allows more, in seconds since 1970.")] = None,
    usage: Annotated[ToldUsage | None, Field(description="What its program says that it has used.")] = None,
    paths: Annotated[
        dict[str, str], Field(description="Paths in its box, which the command may have told, and the same outside.")
    ] = {},
) -> TaskSummary:
    """End an attempt as its supervisor, when its command has ended and, if it is completed, its work is committed.

    The work of any other attempt is kept, and its worktree returns to where it began; also if the lease was lost.
    """
    work = await ctx.read(lambda tx: attempts.require_supervisor(tx, task_id, attempt, key))
    ending = AttemptEnding(
        outcome=outcome,
        result_data=result_data,
        artifacts=artifacts,
        reason=reason,
        retryable=retryable,
        error_class=error_class,
        failure=failure,
        until=None if until is None else int(until * SECOND),
        usage=usage,
        is_of_program=error_class != ASKS_FOR_ANOTHER,
    ).masked(ctx.secrets)
    request, translation = attempts.requested_end(work), Translation((Path(one), Path(paths[one])) for one in paths)
    ending = ending.with_request(request and request.told(translation))
    if outcome == "completed":
        ending = await checks.judged(ctx, work, ending)
    if ending.outcome == "completed":
        try:
            return await ctx.write(lambda tx: _end(tx, ctx, work, ending, is_put_away=True))
        except Conflict as error:
            if error.code != "LEASE_LOST":
                raise
    is_put_away, problem = False, None
    if not still_running:
        is_put_away, problem = await ctx.local.repositories.shielded(_put_away(ctx, work))
    try:
        return await ctx.write(lambda tx: _end(tx, ctx, work, ending, is_put_away=is_put_away, problem=problem))
    except Conflict as error:
        if error.code != "LEASE_LOST" or not is_put_away:
            raise
        ref = await ctx.write(lambda tx: close(tx, task_id, attempt, problem))
        raise _lost(error, ref) from None


def _lost(error: Conflict, ref: str | None) -> Conflict:
    kept = f" What it made is kept as {ref}." if ref else ""
    return error.with_message(error.message + kept, ref=ref)


async def _put_away(ctx: Ctx, work: Row) -> tuple[bool, str | None]:
    """Whether the work of an attempt is put away, and the problem if it is kept elsewhere."""
    if work["state"] != "open" or work["worktree"] is None:
        return True, None
    async with exclusive(ctx) as repository:
        now = await ctx.read(lambda tx: attempts.find_work(tx, work["task_id"], work["attempt"]))
        if now is None or now["state"] != "open":  # put away meanwhile: another may have begun there
            return True, None
        try:
            return True, await put_away(ctx, repository, now)
        except WorkbenchError:
            return False, None


def _end(
    tx: Tx, ctx: Ctx, work: Row, ending: AttemptEnding, *, is_put_away: bool, problem: str | None = None
) -> TaskSummary:
    task_id, attempt = work["task_id"], work["attempt"]
    summary = progress.end(tx, ctx, progress.held(tx, ctx.caller, task_id, attempt), ending)
    if is_put_away:
        close(tx, task_id, attempt, problem)
    return summary
