"""One attempt under its supervisor: begun when its worktree is free, run under the lease, committed, and finished.

The command may request how its attempt ends; that takes effect when the command exits or is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.confinement.editable import own_path
from workbench.confinement.hidden import hiding
from workbench.errors import BadInput, Conflict, Refused, Unavailable, WorkbenchError
from workbench.git import Repository
from workbench.process import process_identity
from workbench.rules.failures import FailureKind
from workbench.worker import attempt, preparation, surroundings
from workbench.worker.api import Api
from workbench.worker.attempt import AttemptOutcome, Worker, author
from workbench.worker.checkout import WorkerCheckout
from workbench.worker.lease import HeldTask, Lease
from workbench.worker.messages import Mailbox
from workbench.worker.progress import CallReporter, ProgressReporter
from workbench.worker.startup import WorkerConfig, lending, lent_here
from workbench.worker.writing import AttemptLock

OCCUPIED_SECONDS = 0.5
"""The pause between tries of an occupied worktree."""
DEVICE_SECONDS = 0.1
"""The same of a device, which another attempt had."""
ERROR_LIMIT = 9_000
LEAVE_SECONDS = 10.0
"""How long a worker that is stopped sends what its attempt has left, and how long it tells the server that it has
ended: schedulers kill it 30 seconds after SIGTERM."""
CHECK_SECONDS = 20
"""How long one call waits for the end of a check."""
AWAY = "The server, by which its program asks for models, was away meanwhile."

log = logging.getLogger(__name__)


class _DeviceOccupied(Exception):
    """Something of an earlier holder of a device cannot be ended; the message says what."""


@dataclass
class SupervisedAttempt:
    """One attempt, from its claim to its report.

    Args:
        worker: returns the worker that makes it; called when it begins.
        key: tells the server that it is the same supervisor.
    """

    config: WorkerConfig
    api: Api
    checkout: WorkerCheckout | None
    claim: HeldTask
    name: str
    worker: Callable[[], Awaitable[Worker]]
    key: str = field(repr=False)
    _requested: str | None = None
    """The outcome that the command requested, if any."""
    _reads: tuple[Path, Path] | None = None
    """The checkout that it reads, outside of worktrees, and the repository of that."""
    _hide: tuple[str, ...] = ()
    """Paths of the project that its command may not read."""
    _lent: Mapping[str, Any] = field(default_factory=dict)
    """What its command gets of what the attempt holds, as `begin_attempt` answers it."""
    _note: str | None = None
    """What the server says of its worktree."""
    _server: str | None = None
    """The server with which it began."""

    async def make(self) -> None:
        """Make the attempt.

        Raises:
            Conflict: ``LEASE_LOST``. Unavailable: ``PROCESS_SURVIVED``. WorkbenchError: another error of the server.
        """
        place = self.config.worktree
        with AttemptLock(place.writer if place else None, self.claim.task) as writer:
            running = asyncio.create_task(self._run(writer))
            keeping = asyncio.create_task(self._keep_lease(running))
            try:
                await self._finish(await self._outcome(running))
                writer.leave()
            except asyncio.CancelledError:
                await self._give_back()
                writer.leave()
                if _is_cancelled():
                    raise
            except Unavailable as error:
                if error.code == "PROCESS_SURVIVED":
                    await self._leave_survivor(error)
                else:
                    writer.leave()
                raise
            except WorkbenchError:
                writer.leave()
                raise
            finally:
                await _stop(keeping)

    async def _outcome(self, running: asyncio.Task[AttemptOutcome]) -> AttemptOutcome:
        """The outcome of the command; a failure if it was ended because it ran on after it had ended the attempt."""
        try:
            return await running
        except asyncio.CancelledError:
            if self._requested is None or _is_cancelled():
                raise
            return AttemptOutcome(False, error="The command was ended: it ran on after it had ended the attempt.")

    # The command.

    async def _run(self, writer: AttemptLock) -> AttemptOutcome:
        try:
            begun = await self._begin(writer)
        except (BadInput, Conflict, Refused) as error:
            if error.code == "LEASE_LOST":
                raise
            return AttemptOutcome(False, error=f"{error.code}: {error.message}", error_class=error.code)
        try:
            config = await asyncio.to_thread(self._place)
            path = await asyncio.to_thread(self._own_path, config)
        except (Conflict, Unavailable) as error:
            return AttemptOutcome(False, error=str(error), error_class=error.code, retryable=False)
        given = {"token": begun["token"], "model_token": begun["model_token"], "tells": begun["tells"]}
        worker, task = replace(await self.worker(), config=config, python_path=path, **given), self.claim.task
        if failure := await self._prepare():
            return failure

        try:
            async with self._devices():
                return await self._carry_out(worker, task)
        except _DeviceOccupied as error:
            return AttemptOutcome(False, error=f"GPU_UNAVAILABLE: {error}", error_class="GPU_UNAVAILABLE")

    async def _prepare(self) -> AttemptOutcome | None:
        """Prepare the worktree; the outcome, if that fails."""
        try:
            if self.checkout:
                await self.checkout.prepare()
        except WorkbenchError as error:
            if error.code == "LEASE_LOST":
                raise
            return AttemptOutcome(False, error=f"{error.code}: {error.message}", error_class=error.code)
        return None

    async def _carry_out(self, worker: Worker, task: Mapping[str, Any]) -> AttemptOutcome:
        if failure := await preparation.prepare(worker):
            return failure

        async def send(note: str) -> None:
            await self.api.call("report_task_progress", progress_note=note, **self.claim.attempt)

        if self._note:
            task = {**task, "note": self._note}
            await send(self._note)
        config = worker.config
        cwd = config.worktree.path if config.worktree else self._reads[0] if self._reads else None
        calls = CallReporter(self._send_calls, config.frame_bytes)
        async with ProgressReporter(send).sending() as on_line, calls.sending() as on_call:
            outcome = await attempt.run(worker, task, cwd, on_line, on_call, Mailbox(self._deliver))
            if note := await asyncio.to_thread(preparation.changed_environment, self.config.preparation):
                on_line(note)
        if surroundings.misses_something(outcome):
            lacking = surroundings.READ_ONLY if self._reads else surroundings.NO_WORKTREE
            missing = await self.checkout.missing(outcome.error) if self.checkout else lacking
            outcome = replace(outcome, error=f"{outcome.error}\n{missing}".rstrip())
        return outcome

    def _place(self) -> WorkerConfig:
        """The configuration of its command, which outside of worktrees reads a checkout.

        Raises:
            Conflict: ``MOUNT_POINT_TAKEN``. Unavailable: ``HIDE_UNAVAILABLE``.
        """
        config = lending(self.config.at(self.api.url), self._lent)
        if self._reads is None:
            return replace(config, box=hiding(config.box, self._hide)) if self._hide else config
        repository = Repository.open(config.project)
        box = config.box.reading(*self._reads, repository.object_directories(), repository.root)
        repository.anchor_worktree(*self._reads, box.mount_points)
        return replace(config, box=hiding(box, self._hide))

    async def _send_calls(self, started: list[dict[str, Any]], ended: list[dict[str, Any]]) -> None:
        program, runner = self.config.profile.stream, process_identity().rpartition("/")[2]
        calls = {"program": program, "runner": runner, "started": started, "ended": ended}
        await self.api.call("report_attempt_calls", key=self.key, **calls, **self.claim.attempt)

    async def _deliver(self, **arguments: Any) -> Sequence[Mapping[str, Any]]:
        new = await self.api.call("deliver_to_attempt", key=self.key, **arguments, **self.claim.attempt)
        messages: Sequence[Mapping[str, Any]] = new["messages"]
        return messages

    def _own_path(self, config: WorkerConfig) -> str:
        """What has the command import the files of where it works, not the project's; see `own_path`."""
        place = config.worktree.path if config.worktree else self._reads[0] if self._reads else None
        if place is None:
            return ""
        environment = config.box.environment(os.environ) | dict(config.environment)
        return own_path(config.box, config.project, place, environment)

    async def _begin(self, writer: AttemptLock) -> dict[str, Any]:
        """Begin, once no process of another attempt is alive in the worktree; the server records what it waits for.

        Returns the server's answer, with the tokens of the command.
        """
        place = self.config.worktree
        arguments: dict[str, Any] = {"worktree": place.name} if place else {}
        if self.config.profile.token:
            arguments["with_token"] = True
        if self.config.models:
            arguments["with_models"] = True
        while True:
            await _complete_work(asyncio.to_thread(writer.enter))
            try:
                answer = await self.api.call("begin_attempt", key=self.key, **arguments, **self.claim.attempt)
            except Conflict as error:
                if error.code != "WORKTREE_OCCUPIED":
                    raise
                log.info("waiting: %s", error.message)
            else:
                self._server = self.api.server()
                self._note, checkout, self._hide = answer["note"], answer["checkout"], tuple(answer["hide"])
                self._lent = answer["lent"]
                if self.config.device_locks is not None:
                    self._lent = await asyncio.to_thread(lent_here, self.config, self.claim.task)
                self._reads = (Path(checkout["path"]), Path(checkout["git_dir"])) if checkout else None
                if self.checkout:
                    self.checkout.begin(self.claim.attempt, answer["base_commit"])
                return answer
            writer.leave()
            await asyncio.sleep(OCCUPIED_SECONDS)

    @contextlib.asynccontextmanager
    async def _devices(self) -> AsyncIterator[None]:
        """Use the devices that the attempt holds, once nothing of an earlier holder runs: its lease has ended.

        Raises:
            _DeviceOccupied: that cannot be ended.
        """
        with contextlib.ExitStack() as stack:
            locks = [stack.enter_context(AttemptLock(Path(path), self.claim.task)) for path in self._lent["locks"]]
            is_left = True
            try:
                for lock in locks:
                    await self._acquire(lock)
                yield
            except Unavailable as error:
                is_left = error.code != "PROCESS_SURVIVED"  # else the next holder ends what survives
                raise
            finally:
                for lock in locks if is_left else ():
                    lock.leave()

    async def _acquire(self, lock: AttemptLock) -> None:
        """Wait for a device; a supervisor that has had time to notice that its lease has ended is ended."""
        late = time.monotonic() + 2 * self.config.heartbeat_seconds + 4 * self.config.grace_seconds
        while True:
            await _complete_work(asyncio.to_thread(lock.enter))
            if lock.is_held:
                return
            if time.monotonic() > late:
                try:
                    await asyncio.to_thread(lock.evict)
                except Unavailable as error:
                    raise _DeviceOccupied(error.message) from error
            await asyncio.sleep(DEVICE_SECONDS)

    # The lease.

    async def _keep_lease(self, running: asyncio.Task[AttemptOutcome]) -> None:
        """Renew the lease while the command runs; end the command when the lease is lost or the attempt has ended."""
        lease = Lease(self.claim, self._renew, self.config.heartbeat_seconds, self.api.server)
        lost, late = asyncio.create_task(lease.until_lost()), asyncio.create_task(self._wait_until_late())
        try:
            await asyncio.wait({lost, late}, return_when=asyncio.FIRST_COMPLETED)
            if lost.done():
                self._requested = None
                log.warning("the lease of task %s is lost: %s", self.claim.task["id"], lost.result())
            running.cancel()
            await lost  # what the command made is still to be committed and reported
        finally:
            lost.cancel()
            late.cancel()

    async def _renew(self) -> bool:
        work = await self.api.call("heartbeat_and_get_tasks", limit=1)
        task_id = self.claim.task["id"]
        self._requested = next(
            (request["outcome"] for request in work["finishing"] if request["task_id"] == task_id), None
        )
        return task_id in {task["id"] for task in work["holding"]}

    async def _wait_until_late(self) -> None:
        """Wait until the command has run on for too long after it ended the attempt."""
        while self._requested is None:
            await asyncio.sleep(min(1.0, self.config.finish_grace_seconds))
        log.info("task %s: its command says that it is %s", self.claim.task["id"], self._requested)
        await asyncio.sleep(self.config.finish_grace_seconds)

    # Its end.

    async def _finish(self, outcome: AttemptOutcome) -> None:
        if self.config.profile.token or self.config.models:
            await self._renew()
        if self._requested == "released":
            await self._leave()
            await self._report("released")
        elif self._requested == "completed" or (self._requested is None and outcome.ok):
            await self._complete(outcome)
        else:
            await self._fail(outcome)

    async def _complete(self, outcome: AttemptOutcome) -> None:
        try:
            commit = await self._commit()
            names = await self.checkout.hand_over(outcome.artifacts) if self.checkout else outcome.artifacts
        except WorkbenchError as error:
            await self._fail(AttemptOutcome(False, error=f"{error.code}: {error.message}", error_class=error.code))
            return
        artifacts = [*names, *([f"commit:{commit}"] if commit else [])]
        facts = {"result_data": outcome.result, "artifacts": artifacts, **_usage(outcome)}
        try:
            await self._wait_for_check()
            await self._report("completed", **facts)
        except BadInput as error:  # such as a result that is too large: that of another attempt would be no better
            await self._fail(AttemptOutcome(False, error=str(error), retryable=False))
        except Conflict as error:  # such as an open subtask
            if error.code == "LEASE_LOST":
                raise
            await self._fail(AttemptOutcome(False, error=str(error), error_class=error.code))

    async def _wait_for_check(self) -> None:
        """Have the server check the commit, if the task has a check; its verdict decides how the attempt ends."""
        state = "waiting"
        while state in ("waiting", "running"):
            check = await self.api.call("check_attempt", key=self.key, wait_seconds=CHECK_SECONDS, **self.claim.attempt)
            state = check["state"]

    async def _fail(self, outcome: AttemptOutcome, **details: Any) -> None:
        await self._leave()
        outcome = self._excused(outcome)
        facts = {"retryable": outcome.retryable, "error_class": outcome.error_class, **_usage(outcome), **details}
        if outcome.failure is not None:
            facts |= {"failure": outcome.failure.kind, "until": outcome.failure.until}
        await self._report("failed", reason=outcome.error[:ERROR_LIMIT], **facts)

    def _excused(self, outcome: AttemptOutcome) -> AttemptOutcome:
        """An outcome; if its program reached no model because the server was away, that passes with time."""
        failure = outcome.failure
        is_refused = failure is not None and failure.kind is FailureKind.REFUSED
        if failure is None or not (is_refused and self.config.models) or self.api.server() == self._server:
            return outcome
        failure = replace(failure, kind=FailureKind.OVERLOADED)
        error = f"{AWAY}\n{outcome.error}"
        return replace(outcome, error=error, failure=failure, error_class=str(failure.kind), retryable=True)

    async def _report(self, outcome: str, **facts: Any) -> None:
        if paths := self.config.box.translation.changes:
            facts["paths"] = paths
        await self.api.call("finish_attempt", outcome=outcome, key=self.key, **facts, **self.claim.attempt)

    async def _give_back(self) -> None:
        """Tell the server that the command has ended without success; the server keeps its work."""
        if _is_cancelled():  # else the lease is lost, and the server takes nothing of it
            await _try(self._leave())
        details = {"outcome": "released", "reason": "the worker was stopped"}
        await _try(self.api.call_once("finish_attempt", key=self.key, **details, **self.claim.attempt))

    async def _leave_survivor(self, error: WorkbenchError) -> None:
        """Fail the attempt whose command cannot be ended. The worker then ends, to start nothing beside it."""
        with contextlib.suppress(WorkbenchError):
            await self._fail(AttemptOutcome(False, error=str(error), error_class=error.code), still_running=True)

    async def _commit(self) -> str | None:
        """Commit the command's changes; the newest commit of the attempt, if there is one."""
        if self.checkout is None:
            return None
        return await self.checkout.commit(message_of(self.claim.task, self.name), author(self.name))

    async def _leave(self) -> None:
        """Leave the changes of an attempt that did not complete its task to the server."""
        if self.checkout is not None:
            await self.checkout.leave(message_of(self.claim.task, self.name), author(self.name))


def message_of(task: Mapping[str, Any], agent_id: str) -> str:
    """The message of the commit that an attempt makes."""
    return f"{task['title']}\n\nTask {task['id']}, attempt {task['attempt']}, by {agent_id}."


def _usage(outcome: AttemptOutcome) -> dict[str, Any]:
    """What the program of an attempt says that it has used, if it says something."""
    names = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
    told = {name: getattr(outcome.usage, name, None) for name in names}
    return {"usage": told} if any(value is not None for value in told.values()) else {}


async def _complete_work(work: Coroutine[Any, Any, None]) -> None:
    """Complete `work`, even if this is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _try(work: Coroutine[Any, Any, object]) -> None:
    """Do what may fail, for `LEAVE_SECONDS`; also in a task that is cancelled, where `asyncio.timeout` does not end."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task}, timeout=LEAVE_SECONDS)
    task.cancel()
    (failure,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(failure, Exception):
        log.warning("what the attempt has left was not told: %s", failure)


async def _stop(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait until it has ended; log its failure, if any."""
    task.cancel()
    (failure,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(failure, Exception):
        log.error("a task of the worker failed", exc_info=failure)


def _is_cancelled() -> bool:
    """Whether this task itself is cancelled, not one that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
