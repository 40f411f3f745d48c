"""Waits for admission, heartbeats, claims, runs each task's command, commits, reports.

The supervisor holds the token and the lease and is not confined; the command it wraps is, and only does the task.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from workbench.errors import BadInput, Refused, WorkbenchError
from workbench.worker import attempt
from workbench.worker.api import Api
from workbench.worker.attempt import Outcome, Worker, author
from workbench.worker.checkout import WorkerCheckout
from workbench.worker.progress import ProgressReporter
from workbench.worker.startup import WorkerConfig

WAIT_SECONDS = 20.0
POLL_SECONDS = 2.0
"""How often a task is tried that cannot be claimed yet."""
ERROR_LIMIT = 9_000
SETTLED_SECONDS = 60.0
"""How long a command may go on that has told the server itself how its task ended."""
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
        self._site = WorkerCheckout(config, config.place) if config.place else None
        self._line: Api
        self._name = "worker"
        self._persona: str | None = None

    def stop(self) -> None:
        """Start nothing more, give back what is held, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped, or until there is no more to do.

        Raises:
            Refused: ``REJECTED``. WorkbenchError: what ends it for good, such as a revoked token.
        """
        async with Api(self._config) as self._line:
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
            task = await self._next()
            if task is None:
                return
            await self._attempt(task)
            left = None if left is None else left - 1
        log.info("made as many attempts as it may")

    async def _wait_for_admission(self) -> None:
        state = {"status": "pending"}
        while state["status"] == "pending":
            state = await self._line.call("registration_status", wait_seconds=WAIT_SECONDS)
        if state["status"] in ("rejected", "revoked"):
            raise Refused("REJECTED", f"The registration was turned down. {state['reason'] or ''}".rstrip())
        self._name, self._persona = state["agent_id"], state["persona_id"]
        log.info("admitted as %s", self._name)
        if self._config.missing:
            log.warning("not confined in all: %s", ", ".join(self._config.missing))

    # What to do next.

    async def _next(self) -> dict[str, Any] | None:
        """A task that is claimed; None when there will be none."""
        if self._config.task_id is None:
            return await self._from_queue()
        return await self._the_one(self._config.task_id)

    async def _from_queue(self) -> dict[str, Any]:
        while True:
            work = await self._line.call("heartbeat_and_get_tasks", wait_seconds=WAIT_SECONDS, limit=1)
            if work["holding"] or work["available"]:
                claim = await self._line.call("claim_task")
                if claim["task"] is not None:
                    task: dict[str, Any] = claim["task"]
                    return task

    async def _the_one(self, task_id: int) -> dict[str, Any] | None:
        """The one task it is for, once it can be claimed; None when it is over or somebody else's."""
        while True:
            try:
                claim = await self._line.call("claim_task", task_id=task_id)
            except WorkbenchError as error:
                if error.code != "TASK_NOT_CLAIMABLE":
                    raise
            else:
                task: dict[str, Any] = claim["task"]
                return task
            state = await self._line.call("get_task_status", task_id=task_id)
            if state["status"] in OVER or state["assigned_agent_id"] not in (None, self._name):
                log.info("task %s is %s", task_id, state["status"])
                return None
            await self._line.call("wait_for_task", task_id=task_id, until="changed", wait_seconds=POLL_SECONDS)

    # One attempt.

    async def _attempt(self, task: dict[str, Any]) -> None:
        try:
            await self._do(task)
        except WorkbenchError as error:
            if error.code != "LEASE_LOST":
                raise
            log.warning("task %s is no longer ours: %s", task["id"], error.message)

    async def _do(self, task: dict[str, Any]) -> None:
        """From its start to what is reported of its end."""
        log.info("task %s, attempt %s: %s", task["id"], task["attempt"], task["title"])
        held = {"task_id": task["id"], "attempt": task["attempt"]}
        await self._line.call("start_task", **held)
        running = asyncio.create_task(self._run(task, held))
        beating = asyncio.create_task(self._keep_lease(task, running))
        try:
            await self._report(task, held, await running)
        except asyncio.CancelledError:
            stopping = _is_cancelled()
            await self._give_back(held, lost=not stopping)
            if stopping:
                raise
        finally:
            beating.cancel()

    async def _run(self, task: Mapping[str, Any], held: Mapping[str, Any]) -> Outcome:
        worker = await self._worker()
        if self._site:
            await self._site.catch_up()

        async def send(text: str) -> None:
            await self._line.call("report_task_progress", progress_note=text, **held)

        async with ProgressReporter(send).sending() as hear:
            cwd = self._config.place.path if self._config.place else None
            return await attempt.run(worker, task, cwd, hear)

    async def _worker(self) -> Worker:
        """Who makes the attempt, with the text of its persona as it is now."""
        text = ""
        if self._persona is not None:
            text = (await self._line.call("get_persona", persona_id=self._persona))["definition"]
        return Worker(self._config, self._name, text, self._adopts_orphans)

    async def _keep_lease(self, task: Mapping[str, Any], running: asyncio.Task[Outcome]) -> None:
        """Renew the lease while the command runs; end the command when the lease, or the admission, is lost."""
        seconds = min(self._config.heartbeat_seconds, _lease_seconds(task) / 3)
        try:
            await asyncio.sleep(seconds)
            while await self._holds(task["id"]):
                await asyncio.sleep(seconds)
            if self._config.profile.token and await self._settled(task):
                log.info("task %s: its command has told the server how it ended", task["id"])
                await asyncio.wait({running}, timeout=SETTLED_SECONDS)
        except WorkbenchError as error:
            log.warning("%s: %s", error.code, error.message)
        if not running.done():
            log.warning("the lease of task %s is lost; its command is ended", task["id"])
            running.cancel()

    async def _holds(self, task_id: int) -> bool:
        work = await self._line.call("heartbeat_and_get_tasks", limit=1)
        return task_id in {line["id"] for line in work["holding"]}

    async def _settled(self, task: Mapping[str, Any]) -> bool:
        """Whether the agent itself has completed or failed this attempt, as programs with its token may."""
        found = await self._line.call("get_task", task_id=task["id"])
        mine = [one for one in found["attempts"] if one["attempt"] == task["attempt"]]
        return any(one["agent_id"] == self._name and one["outcome"] in ("completed", "failed") for one in mine)

    # Its end.

    async def _report(self, task: Mapping[str, Any], held: Mapping[str, Any], outcome: Outcome) -> None:
        if not outcome.ok:
            await self._undo()
            await self._fail(held, outcome)
            return
        try:
            commit = await self._commit(task)
        except WorkbenchError as error:
            await self._undo()
            await self._fail(held, Outcome(False, error=f"{error.code}: {error.message}", error_class=error.code))
            return
        made = [*outcome.artifacts, *([f"commit:{commit}"] if commit else [])]
        try:
            await self._line.call("complete_task", result_data=outcome.result, artifacts=made, **held)
        except BadInput as error:  # such as a result that is too large: another attempt would say the same
            await self._fail(held, Outcome(False, error=str(error), retryable=False))

    async def _fail(self, held: Mapping[str, Any], outcome: Outcome) -> None:
        told = {"retryable": outcome.retryable, "error_class": outcome.error_class}
        await self._line.call("fail_task", error_message=outcome.error[:ERROR_LIMIT], **told, **held)

    async def _give_back(self, held: Mapping[str, Any], *, lost: bool) -> None:
        await self._undo()
        if not lost:
            with contextlib.suppress(WorkbenchError):
                await self._line.once("release_task", reason="the worker was stopped", **held)

    async def _commit(self, task: Mapping[str, Any]) -> str | None:
        if self._site is None:
            return None
        message = f"{task['title']}\n\nTask {task['id']}, attempt {task['attempt']}, by {self._name}."
        return await self._site.commit(message, author(self._name))

    async def _undo(self) -> None:
        if self._site:
            with contextlib.suppress(WorkbenchError):
                await self._site.discard()


def _is_cancelled() -> bool:
    """Whether it is this task itself that is cancelled, and not one that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _lease_seconds(task: Mapping[str, Any]) -> float:
    """How long the lease of a task that was just claimed lasts."""
    return (
        datetime.fromisoformat(task["lease_expires_at"]) - datetime.fromisoformat(task["claimed_at"])
    ).total_seconds()
