"""Waits for admission, claims tasks, and makes an attempt at each.

The supervisor holds the token and the lease and is not confined; the command it wraps is, and only does the task.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
from collections.abc import Mapping
from typing import Any

from workbench.errors import Conflict, Refused, WorkbenchError
from workbench.worker.api import Api
from workbench.worker.attempt import Worker, author
from workbench.worker.checkout import WorkerCheckout
from workbench.worker.elsewhere import CheckoutElsewhere
from workbench.worker.lease import HeldTask
from workbench.worker.startup import WorkerConfig
from workbench.worker.supervised import SupervisedAttempt, message_of
from workbench.worker.writing import AttemptLock

WAIT_SECONDS = 20.0
POLL_SECONDS = 2.0
"""The pause between tries of a task that cannot be claimed yet."""
LOST_SECONDS = 0.5
"""The pause after an attempt that is another supervisor's."""
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
        self._checkout: WorkerCheckout | None = None
        self._api: Api
        self._name = "worker"
        self._persona: str | None = None
        self._key = _lasting_key(config) if config.server_file is None else secrets.token_urlsafe(32)
        self._made: Mapping[str, Any] | None = None
        """The attempt that it made last."""

    def stop(self) -> None:
        """Start no more tasks, give back the one that is held, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped, or until there is no more to do.

        Raises:
            Refused: ``REJECTED``. Unavailable: ``PROCESS_SURVIVED``. WorkbenchError: what ends it for good, such as a
                revoked token.
        """
        async with Api(self._config) as self._api:
            self._checkout = self._open_checkout()
            stop = asyncio.create_task(self._stopping.wait())
            work = asyncio.create_task(self._work())
            await asyncio.wait({stop, work}, return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await work

    def _open_checkout(self) -> WorkerCheckout | None:
        config, place = self._config, self._config.worktree
        if place is None:
            return None
        if config.server_file is None:
            return CheckoutElsewhere(config, place, self._api.call, self._key)
        return WorkerCheckout(config, place)

    async def _work(self) -> None:
        await self._wait_for_admission()
        if self._config.server_file is None:
            await self._end_earlier()
        remaining = self._config.limits.tasks
        while remaining is None or remaining > 0:
            claim = await self._next_task()
            if claim is None:
                return
            await self._attempt(claim)
            remaining = None if remaining is None else remaining - 1
        log.info("made as many attempts as it may")

    async def _wait_for_admission(self) -> None:
        state = {"status": "pending"}
        while state["status"] == "pending":
            state = await self._api.call("registration_status", wait_seconds=WAIT_SECONDS)
        if state["status"] in ("rejected", "revoked"):
            raise Refused("REJECTED", state["message"], reason=state["reason"])
        self._name, self._persona = state["agent_id"], state["persona_id"]
        log.info("admitted as %s", self._name)
        if self._config.missing:
            log.warning("not confined in all: %s", ", ".join(self._config.missing))

    async def _end_earlier(self) -> None:
        """Give back what an earlier process of this worker held: its server does not see processes elsewhere end, and
        heartbeats would renew the lease for ever."""
        for task in (await self._api.call("heartbeat_and_get_tasks", limit=1))["holding"]:
            attempt = {"task_id": task["id"], "attempt": task["attempt"]}
            log.info("attempt %s at task %s ended with an earlier process", task["attempt"], task["id"])
            await self._leave_earlier(task)
            reason = "the worker was ended, and started again"
            with contextlib.suppress(Conflict):  # it had not begun, or is over by now
                await self._api.call("finish_attempt", outcome="released", key=self._key, reason=reason, **attempt)

    async def _leave_earlier(self, task: Mapping[str, Any]) -> None:
        """Send what an earlier process has left of an attempt, once nothing of it runs."""
        if isinstance(self._checkout, CheckoutElsewhere) and (place := self._config.worktree):
            with AttemptLock(place.writer, task) as writer:
                await asyncio.to_thread(writer.enter)
                if writer.is_held and self._checkout.resume(task):
                    await self._checkout.leave(message_of(task, self._name), author(self._name))
                writer.leave()

    # Claiming.

    async def _next_task(self) -> HeldTask | None:
        """The next task; None when there will be none."""
        if self._config.task_id is None:
            return await self._claim_any()
        return await self._claim_only(self._config.task_id)

    async def _claim_any(self) -> HeldTask:
        while True:
            work = await self._api.call("heartbeat_and_get_tasks", wait_seconds=WAIT_SECONDS, limit=1)
            if work["holding"] or work["available"]:
                claim = await self._claim()
                if claim is not None:
                    return claim

    async def _claim_only(self, task_id: int) -> HeldTask | None:
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

    async def _claim(self, **arguments: int) -> HeldTask | None:
        asked_at = asyncio.get_running_loop().time()
        task = (await self._api.call("claim_task", **arguments))["task"]
        return None if task is None else HeldTask(task, asked_at)

    # One attempt.

    async def _attempt(self, claim: HeldTask) -> None:
        log.info("task %s, attempt %s: %s", claim.task["id"], claim.task["attempt"], claim.task["title"])
        self._api.holds_task = True
        try:
            if claim.attempt == self._made:
                await self._end_again(claim)
                return
            self._made = claim.attempt
            await SupervisedAttempt(
                self._config, self._api, self._checkout, claim, self._name, self._load_worker, self._key
            ).make()
        except WorkbenchError as error:
            if error.code != "LEASE_LOST":
                raise
            log.warning("the attempt at task %s is over: %s", claim.task["id"], error.message)
            await asyncio.sleep(LOST_SECONDS)
        finally:
            self._api.holds_task = False

    async def _end_again(self, claim: HeldTask) -> None:
        """Tell the server again that an attempt has ended: it did not hear it before, such as on a full disk."""
        log.info("attempt %s at task %s had ended", claim.task["attempt"], claim.task["id"])
        self._made = None
        reason = "the server did not hear in time that it had ended"
        await self._api.call("finish_attempt", outcome="released", key=self._key, reason=reason, **claim.attempt)

    async def _load_worker(self) -> Worker:
        """The worker that makes the attempt, with the current text of its persona."""
        text = ""
        if self._persona is not None:
            text = (await self._api.call("get_persona", persona_id=self._persona))["definition"]
        return Worker(self._config, self._name, text, self._adopts_orphans)


def _lasting_key(config: WorkerConfig) -> str:
    """The key of a worker's attempts that all of its processes have, one after the other."""
    return hashlib.sha256(f"attempts {config.token}".encode()).hexdigest()
