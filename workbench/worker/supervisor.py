"""Waits for admission, claims tasks, runs the command of each, commits and reports.

The supervisor holds the token and the lease and is not confined; the command it wraps is, and only does the task.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from workbench.errors import BadInput, Refused, Unavailable, WorkbenchError
from workbench.worker import attempt
from workbench.worker.api import Api
from workbench.worker.attempt import Outcome, Worker, author
from workbench.worker.checkout import WorkerCheckout
from workbench.worker.lease import Claim, Lease
from workbench.worker.progress import ProgressReporter
from workbench.worker.startup import WorkerConfig

WAIT_SECONDS = 20.0
POLL_SECONDS = 2.0
"""How often a task is tried that cannot be claimed yet."""
ERROR_LIMIT = 9_000
SETTLED_SECONDS = 60.0
"""How long a command may go on that has itself completed or failed its task."""
OVER = ("completed", "failed", "cancelled")

log = logging.getLogger(__name__)


class Supervisor:
    """One worker.

    Args:
        adopts_orphans: this process does nothing else, and is a subreaper; see `ProcessTree`.
    """

    def __init__(self, config: WorkerConfig, *, adopts_orphans: bool = False) -> None:
        self._config = config
        self._adopts_orphans = adopts_orphans
        self._stopping = asyncio.Event()
        self._checkout = WorkerCheckout(config, config.worktree) if config.worktree else None
        self._api: Api
        self._name = "worker"
        self._persona: str | None = None

    def stop(self) -> None:
        """Start nothing more, give back what is held, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped, or until there is no more to do.

        Raises:
            Refused: ``REJECTED``. Unavailable: ``PROCESS_SURVIVED``. WorkbenchError: what ends it for good, such as a
                revoked token.
        """
        async with Api(self._config) as self._api:
            stopped = asyncio.create_task(self._stopping.wait())
            working = asyncio.create_task(self._work())
            await asyncio.wait({stopped, working}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    async def _work(self) -> None:
        await self._wait_for_admission()
        left = self._config.limits.tasks
        while left is None or left > 0:
            claim = await self._next()
            if claim is None:
                return
            await self._attempt(claim)
            left = None if left is None else left - 1
        log.info("made as many attempts as it may")

    async def _wait_for_admission(self) -> None:
        state = {"status": "pending"}
        while state["status"] == "pending":
            state = await self._api.call("registration_status", wait_seconds=WAIT_SECONDS)
        if state["status"] in ("rejected", "revoked"):
            raise Refused("REJECTED", f"The registration was turned down. {state['reason'] or ''}".rstrip())
        self._name, self._persona = state["agent_id"], state["persona_id"]
        log.info("admitted as %s", self._name)
        if self._config.missing:
            log.warning("not confined in all: %s", ", ".join(self._config.missing))

    # Claiming.

    async def _next(self) -> Claim | None:
        """The next task; None when there will be none."""
        if self._config.task_id is None:
            return await self._any_task()
        return await self._only_task(self._config.task_id)

    async def _any_task(self) -> Claim:
        while True:
            work = await self._api.call("heartbeat_and_get_tasks", wait_seconds=WAIT_SECONDS, limit=1)
            if work["holding"] or work["available"]:
                claim = await self._claim()
                if claim is not None:
                    return claim

    async def _only_task(self, task_id: int) -> Claim | None:
        """The one task of this worker, once it can be claimed; None when it is over or another agent has it."""
        while True:
            try:
                return await self._claim(task_id=task_id)
            except WorkbenchError as error:
                if error.code != "TASK_NOT_CLAIMABLE":
                    raise
            state = await self._api.call("get_task_status", task_id=task_id)
            if state["status"] in OVER or state["assigned_agent_id"] not in (None, self._name):
                log.info("task %s is %s", task_id, state["status"])
                return None
            await self._api.call("wait_for_task", task_id=task_id, until="changed", wait_seconds=POLL_SECONDS)

    async def _claim(self, **which: int) -> Claim | None:
        asked_at = asyncio.get_running_loop().time()
        task = (await self._api.call("claim_task", **which))["task"]
        return None if task is None else Claim(task, asked_at)

    # One attempt.

    async def _attempt(self, claim: Claim) -> None:
        self._api.holds_task = True
        try:
            await self._run_and_report(claim)
        except WorkbenchError as error:
            if error.code != "LEASE_LOST":
                raise
            log.warning("the attempt at task %s is over: %s", claim.task["id"], error.message)
        finally:
            self._api.holds_task = False

    async def _run_and_report(self, claim: Claim) -> None:
        log.info("task %s, attempt %s: %s", claim.task["id"], claim.task["attempt"], claim.task["title"])
        running = asyncio.create_task(self._run(claim))
        keeping = asyncio.create_task(self._keep_lease(claim, running))
        try:
            await self._report(claim, await running)
        except asyncio.CancelledError:
            stopping = _is_cancelled()
            await self._give_back(claim, lost=not stopping)
            if stopping:
                raise
        except Unavailable as error:
            if error.code == "PROCESS_SURVIVED":
                await self._leave_survivor(claim, error)
            raise
        finally:
            await _stop(keeping)

    async def _run(self, claim: Claim) -> Outcome:
        await self._api.call("start_task", **claim.attempt)
        worker = await self._worker()
        if self._checkout:
            await self._checkout.fetch_branches()

        async def send(note: str) -> None:
            await self._api.call("report_task_progress", progress_note=note, **claim.attempt)

        async with ProgressReporter(send).sending() as on_line:
            cwd = self._config.worktree.path if self._config.worktree else None
            return await attempt.run(worker, claim.task, cwd, on_line)

    async def _worker(self) -> Worker:
        """Who makes the attempt, with the text of its persona as it is now."""
        text = ""
        if self._persona is not None:
            text = (await self._api.call("get_persona", persona_id=self._persona))["definition"]
        return Worker(self._config, self._name, text, self._adopts_orphans)

    async def _keep_lease(self, claim: Claim, running: asyncio.Task[Outcome]) -> None:
        """Renew the lease as long as the command runs; when the lease is lost, end the command."""
        task_id = claim.task["id"]

        async def renew() -> bool:
            work = await self._api.call("heartbeat_and_get_tasks", limit=1)
            return task_id in {task["id"] for task in work["holding"]}

        try:
            lease = Lease(claim, renew, self._config.heartbeat_seconds, self._api.server_runs)
            reason = await lease.until_lost()
            if self._config.profile.token and await self._settled(claim):
                log.info("task %s: its command has completed or failed it", task_id)
                await asyncio.wait({running}, timeout=SETTLED_SECONDS)
            else:
                log.warning("the lease of task %s is lost: %s", task_id, reason)
        finally:
            running.cancel()

    async def _settled(self, claim: Claim) -> bool:
        """Whether the agent itself has completed or failed this attempt, as programs with its token may."""
        try:
            found = await self._api.call_once("get_task", task_id=claim.task["id"])
        except WorkbenchError:
            return False
        mine = [one for one in found["attempts"] if one["attempt"] == claim.task["attempt"]]
        return any(one["agent_id"] == self._name and one["outcome"] in ("completed", "failed") for one in mine)

    # Its end.

    async def _report(self, claim: Claim, outcome: Outcome) -> None:
        if not outcome.ok:
            await self._undo()
            await self._fail(claim, outcome)
            return
        try:
            commit = await self._commit(claim)
        except WorkbenchError as error:
            await self._undo()
            await self._fail(claim, Outcome(False, error=f"{error.code}: {error.message}", error_class=error.code))
            return
        artifacts = [*outcome.artifacts, *([f"commit:{commit}"] if commit else [])]
        try:
            await self._api.call("complete_task", result_data=outcome.result, artifacts=artifacts, **claim.attempt)
        except BadInput as error:  # such as a result that is too large: that of another attempt would be no better
            await self._fail(claim, Outcome(False, error=str(error), retryable=False))

    async def _fail(self, claim: Claim, outcome: Outcome) -> None:
        facts = {"retryable": outcome.retryable, "error_class": outcome.error_class}
        await self._api.call("fail_task", error_message=outcome.error[:ERROR_LIMIT], **facts, **claim.attempt)

    async def _give_back(self, claim: Claim, *, lost: bool) -> None:
        await self._undo()
        if not lost:
            with contextlib.suppress(WorkbenchError):
                await self._api.call_once("release_task", reason="the worker was stopped", **claim.attempt)

    async def _leave_survivor(self, claim: Claim, error: WorkbenchError) -> None:
        """Fail the attempt whose command cannot be ended. The worker ends then: it starts nothing beside that one."""
        if _is_cancelled():
            await self._give_back(claim, lost=False)
            return
        await self._undo()
        with contextlib.suppress(WorkbenchError):
            await self._fail(claim, Outcome(False, error=str(error), error_class=error.code))

    async def _commit(self, claim: Claim) -> str | None:
        if self._checkout is None:
            return None
        task = claim.task
        message = f"{task['title']}\n\nTask {task['id']}, attempt {task['attempt']}, by {self._name}."
        return await self._checkout.commit(message, author(self._name))

    async def _undo(self) -> None:
        if self._checkout:
            with contextlib.suppress(WorkbenchError):
                await self._checkout.discard()


async def _stop(task: asyncio.Task[None]) -> None:
    """Cancel a task of one's own, and wait until it has ended; how it failed, if it did, is logged."""
    task.cancel()
    (failure,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(failure, Exception):
        log.error("a task of the worker failed", exc_info=failure)


def _is_cancelled() -> bool:
    """Whether it is this task itself that is cancelled, and not one that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
