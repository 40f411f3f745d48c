"""Waits for admission, heartbeats, claims, runs each task's command, commits, reports.

The supervisor holds the token and the lease; the command it wraps only does the task.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from workbench.client import Calls, HttpClient, McpClient
from workbench.errors import BadInput, Refused, WorkbenchError
from workbench.git import Checkout, Identity
from workbench.worker.command import Outcome, run_command
from workbench.worker.orders import Orders

WAIT_SECONDS = 20.0
RECONNECT_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)
PATIENCE_SECONDS = 600.0
"""A server that is away for longer than this does not come back: the worker ends."""
NOTE_LIMIT = 9_000
NOTE_SECONDS = 1.0

log = logging.getLogger(__name__)


class Supervisor:
    """One worker in one directory."""

    def __init__(self, orders: Orders, place: Path) -> None:
        self._orders = orders
        self._place = place
        self._stopping = asyncio.Event()
        self._client: Calls
        self._name = "worker"

    def stop(self) -> None:
        """Start nothing more, give back what is held, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped.

        Raises:
            Refused: ``REJECTED``. WorkbenchError: what ends it for good, such as a revoked token.
        """
        async with self._connect() as self._client:
            stopped = asyncio.create_task(self._stopping.wait())
            working = asyncio.create_task(self._work())
            await asyncio.wait({stopped, working}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    def _connect(self) -> HttpClient | McpClient:
        if self._orders.mcp_url:
            return McpClient(self._orders.mcp_url, self._orders.token)
        return HttpClient(self._orders.url, self._orders.token)

    async def _work(self) -> None:
        await self._wait_for_admission()
        while True:
            work = await self._call("heartbeat_and_get_tasks", wait_seconds=WAIT_SECONDS, limit=1)
            if work["holding"] or work["available"]:
                claim = await self._call("claim_task")
                if claim["task"] is not None:
                    await self._attempt(claim["task"])

    async def _wait_for_admission(self) -> None:
        state = {"status": "pending"}
        while state["status"] == "pending":
            state = await self._call("registration_status", wait_seconds=WAIT_SECONDS)
        if state["status"] in ("rejected", "revoked"):
            raise Refused("REJECTED", f"The registration was turned down. {state['reason'] or ''}".rstrip())
        self._name = state["agent_id"]
        log.info("admitted as %s", self._name)

    async def _attempt(self, task: dict[str, Any]) -> None:
        try:
            await self._do(task)
        except WorkbenchError as error:
            if error.code != "LEASE_LOST":
                raise
            log.warning("task %s is no longer ours: %s", task["id"], error.message)

    async def _do(self, task: dict[str, Any]) -> None:
        """One attempt, from its start to what is reported of its end."""
        log.info("task %s, attempt %s: %s", task["id"], task["attempt"], task["title"])
        held = {"task_id": task["id"], "attempt": task["attempt"]}
        await self._call("start_task", **held)
        running = asyncio.create_task(self._run(task, held))
        beating = asyncio.create_task(self._keep_lease(task, running))
        try:
            outcome = await running
        except asyncio.CancelledError:
            await self._give_back(held, lost=beating.done())
            if not beating.done():
                raise
            return
        finally:
            beating.cancel()
        await self._report(task, held, outcome)

    async def _run(self, task: dict[str, Any], held: dict[str, Any]) -> Outcome:
        async with self._notes(held) as note:
            return await run_command(task, self._place, note, self._author.environment())

    @contextlib.asynccontextmanager
    async def _notes(self, held: dict[str, Any]) -> AsyncIterator[Callable[[str], None]]:
        """Send lines of output as notes on the task, at most one note a second."""
        lines: list[str] = []

        def hear(line: str) -> None:
            log.info("| %s", line)
            lines.append(line)

        async def send() -> None:
            if lines:
                text = "\n".join(lines)[:NOTE_LIMIT]
                lines.clear()
                await self._call("report_task_progress", progress_note=text, **held)

        async def every_second() -> None:
            while True:
                await asyncio.sleep(NOTE_SECONDS)
                with contextlib.suppress(WorkbenchError):
                    await send()

        sending = asyncio.create_task(every_second())
        try:
            yield hear
        finally:
            sending.cancel()
        with contextlib.suppress(WorkbenchError):
            await send()

    async def _keep_lease(self, task: dict[str, Any], running: asyncio.Task[Outcome]) -> None:
        """Renew the lease while the command runs; end the command when the lease, or the admission, is lost."""
        seconds = min(self._orders.heartbeat_seconds, _lease_seconds(task) / 3)
        with contextlib.suppress(WorkbenchError):
            held = {task["id"]}
            while task["id"] in held:
                await asyncio.sleep(seconds)
                work = await self._call("heartbeat_and_get_tasks", limit=1)
                held = {line["id"] for line in work["holding"]}
        log.warning("the lease of task %s is lost; its command is ended", task["id"])
        running.cancel()

    async def _report(self, task: dict[str, Any], held: dict[str, Any], outcome: Outcome) -> None:
        if not outcome.ok:
            await self._undo()
            await self._fail(held, outcome.error, outcome.retryable)
            return
        commit = await self._commit(task)
        made = [*outcome.artifacts, *([f"commit:{commit}"] if commit else [])]
        try:
            await self._call("complete_task", result_data=outcome.result, artifacts=made, **held)
        except BadInput as error:  # such as a result that is too large: another attempt would say the same
            await self._fail(held, str(error), retryable=False)

    async def _fail(self, held: dict[str, Any], error: str, retryable: bool) -> None:
        await self._call("fail_task", error_message=error[:NOTE_LIMIT], retryable=retryable, **held)

    async def _give_back(self, held: dict[str, Any], *, lost: bool) -> None:
        await self._undo()
        if not lost:
            with contextlib.suppress(WorkbenchError):
                await self._client.call("release_task", reason="the worker was stopped", **held)

    async def _commit(self, task: dict[str, Any]) -> str | None:
        if not self._orders.commit:
            return None
        message = f"{task['title']}\n\nTask {task['id']}, attempt {task['attempt']}, by {self._name}."
        return await asyncio.to_thread(self._checkout.commit_all, message, self._author)

    @property
    def _author(self) -> Identity:
        return Identity(self._name, f"{self._name}@workbench.localhost")

    @property
    def _checkout(self) -> Checkout:
        return Checkout(self._place, self._place.parent.parent / "repositories" / self._place.name)

    async def _undo(self) -> None:
        if self._orders.commit:
            await asyncio.to_thread(self._checkout.discard_changes)

    async def _call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call an operation; a server that is away is waited for."""
        waits = iter(RECONNECT_SECONDS)
        patience = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            try:
                return await self._client.call(name, **arguments)
            except WorkbenchError as error:
                gone = asyncio.get_running_loop().time() > patience
                if gone or error.code not in ("NO_SERVER", "STORE_BUSY"):
                    raise
                log.warning("%s; trying again", error.message)
                await asyncio.sleep(next(waits, RECONNECT_SECONDS[-1]))


def _lease_seconds(task: dict[str, Any]) -> float:
    """How long the lease of a task that was just claimed lasts."""
    return (
        datetime.fromisoformat(task["lease_expires_at"]) - datetime.fromisoformat(task["claimed_at"])
    ).total_seconds()
