"""Runs the checks of tasks: each on the exact commit of an attempt, in a box of its own.

A check writes what it has measured to `WORKBENCH_RESULT`, as ``{"metrics": {"name": number}}``.
"""

from __future__ import annotations

import asyncio
import json
from asyncio import to_thread
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import from_json

from workbench.confinement import lending
from workbench.confinement.lending import Lent
from workbench.errors import BadInput, Conflict, WorkbenchError
from workbench.model import Level, Wire
from workbench.ops import Ctx, op
from workbench.ops.duties import duty, recovers
from workbench.ops.parameters import TaskId
from workbench.rules.integration import GateState
from workbench.rules.tasks.check import Check, CheckState, DoneWhen, Evidence, check_of, metrics_of
from workbench.rules.wire import json_safety
from workbench.services.attempts.work import AttemptNumber
from workbench.services.resources import leases
from workbench.services.tasks import attempts, checks, progress
from workbench.services.tasks.attempts import AttemptEnding, Key
from workbench.services.tasks.rows import require_line
from workbench.services.worktrees import trials
from workbench.services.worktrees.imports import import_branch
from workbench.services.worktrees.places import exclusive
from workbench.services.worktrees.rows import find_worktree, require_worktree
from workbench.services.worktrees.trials import Trial, TrialResult
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside
from workbench.worker import scratch
from workbench.worker.attempt import RESULT

SQL = beside(__file__)

MAX_METRICS_BYTES = 100_000
UNCHANGED = "unchanged"
"""The class of the error of an attempt that should have changed something, and has not."""
_STATES = {
    GateState.PASSED: CheckState.PASSED,
    GateState.FAILED: CheckState.FAILED,
    GateState.TIMEOUT: CheckState.FAILED,
}


class CheckProgress(Wire):
    """The state of the check of an attempt; null: it needs none."""

    state: CheckState | None


@op(allow=Level.WORKER, tool=False)
async def check_attempt(
    ctx: Ctx,
    task_id: TaskId,
    attempt: AttemptNumber,
    key: Key,
    wait_seconds: Annotated[float, Field(ge=0, description="Wait this long for its end.")] = 0,
) -> CheckProgress:
    """Have the work of an attempt checked, as its supervisor, when it is committed; the check runs in the server."""

    def question(tx: Reader) -> tuple[Row, checks.Terms, bool]:
        work = attempts.require_supervisor(tx, task_id, attempt, key)
        row = progress.held(tx, ctx.caller, task_id, attempt)
        return work, checks.terms_of(tx, row), checks.find(tx, task_id, attempt) is not None

    work, terms, is_asked = await ctx.read(question)
    if not terms.is_checked:
        return CheckProgress(state=None)
    if not is_asked:
        commit = await ctx.local.repositories.shielded(_commit_of(ctx, work["worktree"]))
        await ctx.write(lambda tx: checks.ask(tx, progress.held(tx, ctx.caller, task_id, attempt), terms, commit, None))

    def state(tx: Reader) -> CheckState:
        found = checks.find(tx, task_id, attempt)
        return CheckState(found["state"]) if found else CheckState.WAITING

    seconds = min(wait_seconds, ctx.settings.wait_limit_seconds)
    ended = await ctx.feed.until(
        state, checks.ENDED.__contains__, "check.ended", subject=f"task:{task_id}", seconds=seconds
    )
    return CheckProgress(state=ended)


async def judged(ctx: Ctx, work: Row, ending: AttemptEnding) -> AttemptEnding:
    """How an attempt ends that its supervisor says is completed: with what tells that, or as a failure.

    Raises:
        Conflict: ``NOT_CHECKED``.
    """

    def question(tx: Reader) -> tuple[checks.Terms, Row | None]:
        terms = checks.terms_of(tx, require_line(tx, work["task_id"]))
        return terms, checks.find(tx, work["task_id"], work["attempt"])

    terms, found = await ctx.read(question)
    if terms.done_when is DoneWhen.SAID or (terms.done_when is DoneWhen.CHANGED and work["worktree"] is None):
        return ending
    commit = await ctx.local.repositories.shielded(_commit_of(ctx, work["worktree"]))
    if terms.done_when is DoneWhen.CHANGED:
        return _if_changed(ending, commit != work["base_commit"], terms)
    if found is None and (failure := terms.failure):
        return failure.model_copy(update={"usage": ending.usage})
    if found is None or found["state"] not in checks.ENDED or found["commit_hash"] != commit:
        raise Conflict("NOT_CHECKED", "The work of this attempt has not been checked as it is now.")
    return _if_passed(ending, found)


def _if_changed(ending: AttemptEnding, is_changed: bool, terms: checks.Terms) -> AttemptEnding:
    if terms.is_demanded and not is_changed:
        reason = "The task is done when something has changed in its worktree, and nothing has."
        return AttemptEnding(outcome="failed", reason=reason, error_class=UNCHANGED, usage=ending.usage)
    return ending.model_copy(update={"evidence": Evidence.CHANGED if is_changed else Evidence.UNCHANGED})


def _if_passed(ending: AttemptEnding, found: Row) -> AttemptEnding:
    if found["state"] == CheckState.FAILED:
        return checks.failure(found).model_copy(update={"usage": ending.usage})
    evidence = Evidence.CHECKED if found["state"] == CheckState.PASSED else Evidence.FLAKY
    return ending.model_copy(update={"evidence": evidence})


async def _commit_of(ctx: Ctx, worktree: str | None) -> str | None:
    """The commit that a worktree's branch is at; None outside of worktrees."""
    if worktree is None:
        return None
    async with exclusive(ctx) as repository:
        row = await ctx.read(lambda tx: require_worktree(tx, worktree))
        return await import_branch(ctx, repository, row)


# Running them.

_OF_CHECK = "check-"
"""What the names of the trials of checks begin with."""
Outcome = tuple[CheckState, TrialResult, dict[str, float] | None]


@recovers
async def recover(ctx: Ctx) -> None:
    """Remove the files of checks that a crash has left: those under way are run again."""
    for home in sorted(ctx.settings.gates.glob(f"{_OF_CHECK}*/")):
        await ctx.local.repositories.shielded(trials.remove(ctx, home.name))


@duty("running checks", 5.0, wakes=True)
async def run_asked(ctx: Ctx) -> None:
    """Run the checks that are asked for on this machine, oldest first, `max_checks` at a time, until there are none.

    Those that were cut off, by the end of a server or by a fault, are run again. Those whose attempt has ended are
    not: they are forgotten.
    """
    machine = ctx.local.machine.only
    if any(row["state"] == CheckState.RUNNING for row in await ctx.read(lambda tx: tx.all(SQL.open, machine=machine))):
        await ctx.write(lambda tx: tx.run(SQL.again, machine=machine))
    running: dict[tuple[int, int], asyncio.Task[None]] = {}
    faults: list[BaseException] = []
    try:
        while True:
            for row in await ctx.read(lambda tx: tx.all(SQL.waiting, machine=machine)):
                place = (row["task_id"], row["attempt"])
                if place not in running and len(running) < ctx.settings.max_checks:
                    running[place] = asyncio.create_task(_run(ctx, row))
            if not running:
                break
            asked = asyncio.create_task(_wait_for_another(ctx, len(running)))
            await asyncio.wait([*running.values(), asked], return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            ended = [running.pop(place) for place in [place for place, task in running.items() if task.done()]]
            faults += [fault for task in ended if (fault := task.exception())]  # the others go on
    finally:
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)
    if faults:
        raise faults[0]


async def _wait_for_another(ctx: Ctx, running: int) -> None:
    """Wait until more checks are asked for than run."""
    seconds, machine = ctx.settings.wait_limit_seconds, ctx.local.machine.only
    await ctx.feed.until(
        lambda tx: len(tx.all(SQL.open, machine=machine)), lambda n: n > running, "check.asked", seconds=seconds
    )


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is checked: the check, the commit, and the target, from which the check's own files are taken."""

    check: Check
    commit: str
    target: str
    recorded: str | None
    """The commit as it is recorded; None outside of worktrees."""


async def _run(ctx: Ctx, row: Row) -> None:
    """Run one check and record its end, which for an attempt without a supervisor is that of the attempt."""
    outcome: Outcome | None
    try:
        subject = await ctx.local.repositories.shielded(_subject(ctx, row))
        leased = await ctx.read(lambda tx: leases.leased_to(tx, row["task_id"], row["attempt"]))
        lent = await to_thread(lending.lent, ctx.settings, leased)
        outcome = await _tries(ctx, row, subject, lent)
    except (WorkbenchError, OSError) as error:
        how = checks.NEVER_RUN if isinstance(error, BadInput) else checks.NOT_RUN
        unrun = TrialResult("", GateState.FAILED, output=f"{how}{error}")
        outcome = CheckState.FAILED, unrun, None
    await ctx.write(lambda tx: _forget(tx) if outcome is None else _end(tx, ctx, row, *outcome))


async def _subject(ctx: Ctx, row: Row) -> _Subject:
    check = check_of(from_json(row["check_stated"]))
    assert check is not None
    found = await ctx.read(lambda tx: find_worktree(tx, row["worktree"])) if row["worktree"] else None
    async with exclusive(ctx) as repository:
        commit = row["commit_hash"]
        if commit is None and found is not None:
            commit = await import_branch(ctx, repository, found)
        branch = found["integration_target"] if found else await to_thread(repository.current_branch)
        target = await to_thread(repository.commit, branch or "HEAD")
        if absent := await to_thread(repository.absent, target, check.files) if check.files else []:
            raise BadInput(
                "CHECK_FILES_MISSING",
                f"The files of the check are taken from {branch or 'HEAD'}, which has nothing at {', '.join(absent)}. "
                "Commit them there, or name others in the check's files.",
                files=absent,
            )
    return _Subject(check, commit or target, target, commit)


async def _tries(ctx: Ctx, row: Row, subject: _Subject, lent: Lent | None) -> Outcome | None:
    """Run the check until it passes or has been repeated often enough; None: its attempt has ended meanwhile.

    It gets what the attempt holds (`lent`).
    """
    name = f"{_OF_CHECK}{row['task_id']}-{row['attempt']}"
    outcome, tries = None, 0
    while tries <= subject.check.repeats:
        tries += 1
        # Each in a trial of its own: code of the attempt that one run calls could change what the next believes.
        async with trials.on_commit(ctx, name, subject.commit, lent) as trial:
            outcome = await _try(ctx, row, subject, trial, tries)
        if outcome is None or outcome[0] is not CheckState.FAILED:
            return outcome
    return outcome


async def _try(ctx: Ctx, row: Row, subject: _Subject, trial: Trial, tries: int) -> Outcome | None:
    """Run the setup, then the check with its own files; None: its attempt has ended meanwhile."""

    async def progress_of(now: TrialResult) -> bool:
        return await ctx.write(lambda tx: _show(tx, row, subject.recorded, tries, now))

    check, home = subject.check, trial.box.scratch

    async def take_files() -> None:
        if check.files:
            await ctx.local.repositories.shielded(trials.restore(ctx, trial, subject.target, check.files))

    await take_files()
    if ctx.settings.setup:
        ready = await trials.run(ctx, trial, TrialResult(ctx.settings.setup), progress_of)
        if ready is None:
            return None
        if ready.state is not GateState.PASSED:
            return CheckState.FAILED, _of_setup(ready), None
        await take_files()  # code of the attempt, which the setup may run, could have changed them
    await to_thread((home / RESULT).unlink, missing_ok=True)
    command = TrialResult(check.run if isinstance(check.run, str) else " ".join(check.run))
    variables = {"WORKBENCH_RESULT": str(home / RESULT), "WORKBENCH_TASK_ID": str(row["task_id"])}
    ended = await trials.run(
        ctx, trial, command, progress_of, argv=check.argv, limit=check.seconds, variables=variables
    )
    if ended is None:
        return None
    state, metrics = _STATES[ended.state], None
    try:
        metrics = ctx.secrets.masked(await to_thread(_metrics, trial))
    except (OSError, ValueError) as error:
        if state is CheckState.PASSED:
            state, ended = CheckState.FAILED, _explained(ended, error)
    return CheckState.FLAKY if state is CheckState.PASSED and tries > 1 else state, ended, metrics


def _of_setup(ready: TrialResult) -> TrialResult:
    """What is said of a check whose set-up has failed; it was not run itself."""
    output = f"{ready.output.rstrip()}\nThe check was not run: the set-up (`setup`) before it has failed."
    return TrialResult("", GateState.FAILED, output=output.lstrip())


def _metrics(trial: Trial) -> dict[str, float] | None:
    content = scratch.read(trial.box.scratch, RESULT, MAX_METRICS_BYTES)
    return None if content is None else metrics_of(json_safety.decode(content))


def _explained(ended: TrialResult, error: Exception) -> TrialResult:
    output = f"{ended.output}\nThe result file cannot be used: {error}.".lstrip()
    return TrialResult(ended.command, GateState.FAILED, ended.exit_code, ended.seconds, output)


def _show(tx: Tx, row: Row, commit: str | None, tries: int, now: TrialResult) -> bool:
    """Record the state of a running check; False if its attempt has ended meanwhile."""
    values = {"task_id": row["task_id"], "attempt": row["attempt"], "commit": commit, "tries": tries}
    return bool(tx.run(SQL.show, values, output=now.output, exit_code=now.exit_code, now=tx.now))


def _end(tx: Tx, ctx: Ctx, row: Row, state: CheckState, result: TrialResult, metrics: dict[str, float] | None) -> None:
    task_id, attempt = row["task_id"], row["attempt"]
    values: dict[str, Any] = {"task_id": task_id, "attempt": attempt, "state": state, "output": result.output}
    values |= {"exit_code": result.exit_code, "metrics": None if metrics is None else json.dumps(metrics)}
    if not tx.run(SQL.end, values, now=tx.now):
        _forget(tx)
        return
    line, found = require_line(tx, task_id), checks.find(tx, task_id, attempt)
    data = {"attempt": attempt, "state": state, "exit_code": result.exit_code, "commit": found and found["commit_hash"]}
    tx.emit("check.ended", f"task:{task_id}", session=line["session_id"], **data)
    if found is not None and found["ending"]:
        ending = _if_passed(AttemptEnding.model_validate_json(found["ending"]), found)
        if ending.outcome == "completed" and line["unmet"]:  # a task that it waits for was added meanwhile
            ending = AttemptEnding(
                outcome="released", reason="Its check has passed, but it waits for another task now."
            )
        progress.end(tx, ctx, line, ending)


def _forget(tx: Tx) -> None:
    """Forget the checks of attempts that have ended before them."""
    tx.run(SQL.forget)
