"""Waits for a task in a cell, which shows meanwhile how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import DisplayHandle

from kernel_ext.decisions import WaitInterrupted, run
from kernel_ext.hosting.host import KernelHost
from kernel_ext.objects.kinds import TOGETHER
from workbench.errors import Conflict, Unavailable
from workbench.present.inert import as_html, inert
from workbench.present.tables import CellOutput, StateCell
from workbench.rules.tasks import lifecycle

READ_SECONDS = 20.0
MISSING_SECONDS = 3.0
"""How long a cell may say that no agent is left after one has come."""


class NotInTime(Unavailable, TimeoutError):
    """A task did not end within the time that a cell waits for it."""


async def wait_for_task(host: KernelHost, task_id: int, timeout: float | None = None) -> None:
    """Wait until a task is completed.

    Args:
        timeout: seconds; None: as long as it takes.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Unavailable: ``NOT_STARTED``. WaitInterrupted: the cell was interrupted.
        Conflict: ``TASK_FAILED``, ``TASK_CANCELLED``. NotInTime: ``TASK_NOT_ENDED``: the time is over; it goes on.
    """
    again = f"`await wb.task({task_id})` waits for it again."
    try:
        async with asyncio.timeout(timeout):
            state = await _wait(host, task_id)
    except TimeoutError:
        missing = await _missing(host, task_id)
        text = f"Task {task_id} has not ended within {timeout:g} s and goes on; {again} {missing}"
        raise NotInTime("TASK_NOT_ENDED", text.rstrip()) from None
    except asyncio.CancelledError:
        raise WaitInterrupted(f"Task {task_id} goes on; {again}") from None
    if state["status"] != "completed":
        why, _, _ = (state["error_message"] or "").strip().partition("\n")
        status = "was cancelled" if state["status"] == "cancelled" else "failed"
        text = inert(f"Task {task_id} {status}: {why}" if why else f"Task {task_id} {status}.")
        raise Conflict(f"TASK_{state['status'].upper()}", f"{text}\n`wb.task({task_id})` shows its attempts and log.")


async def _wait(host: KernelHost, task_id: int) -> Mapping[str, Any]:
    """Show how far a task is until it has ended; its last status."""
    handle: DisplayHandle | None = None
    state = await run(host, host.acall("wait_for_task", task_id=task_id, wait_seconds=0))
    while state["status"] in lifecycle.OPEN:
        missing = await _missing(host, task_id) if state["status"] == "pending" else ""
        handle = _show(handle, state, await _dead(host, state["blocked_by"]), missing)
        seconds = MISSING_SECONDS if missing else READ_SECONDS  # an agent that comes does not change the task
        state = await run(host, host.acall("wait_for_task", task_id=task_id, until="changed", wait_seconds=seconds))
    if handle is not None:
        _show(handle, state)
    return state


async def _missing(host: KernelHost, task_id: int) -> str:
    """What is missing if no agent is left to do a task, or one that it waits for."""
    unattended = await run(host, host.acall("get_unattended_work", task_id=task_id))
    return str(unattended["message"])


async def _dead(host: KernelHost, blockers: Sequence[int]) -> dict[int, str]:
    """The states of those of some tasks that will not complete by themselves."""
    if not blockers:
        return {}
    tasks = (await run(host, host.acall("get_tasks", task_ids=blockers[:TOGETHER])))["tasks"]
    return {task["id"]: task["status"] for task in tasks if task["status"] in lifecycle.DEAD}


def _show(
    handle: DisplayHandle | None, state: Mapping[str, Any], dead: Mapping[int, str] | None = None, missing: str = ""
) -> DisplayHandle | None:
    """Show a state in place of the one before; a terminal has no place to do so."""
    if getattr(get_ipython(), "kernel", None) is None:
        return None
    standing = _Standing(state, dead or {}, missing)
    if handle is None:
        handle = DisplayHandle()
        handle.display(standing)
    else:
        handle.update(standing)
    return handle


class _Standing:
    """How far a task is, in one line.

    Args:
        dead: the states of those that it waits for in vain.
        missing: why nobody does it.
    """

    def __init__(self, state: Mapping[str, Any], dead: Mapping[int, str], missing: str) -> None:

        def blocker(task_id: int) -> str:
            return f"{task_id} ({dead[task_id]}; retry it)" if task_id in dead else str(task_id)

        self._id = state["id"]
        self._state = StateCell.of(state["status"], bool(state["blocked_by"]) and state["status"] == "pending")
        self._is_open = state["status"] in lifecycle.OPEN
        self._progress = state["progress"]
        self._missing = f". {missing}" if missing else ""
        self._rest = "".join(
            (
                f" by {state['assigned_agent_id']}" if state["assigned_agent_id"] else "",
                f", waits for {', '.join(map(blocker, state['blocked_by']))}" if self._state == "blocked" else "",
                ": " if state["error_message"] else "",
            )
        )
        self._error = CellOutput(state["error_message"] or "")

    def __repr__(self) -> str:
        part = f", {self._progress} %" if self._is_open else ""
        error = "\n".join(self._error.text())
        return f"{inert(f'Task {self._id}: {self._state}{self._rest}')}{error}{part}{inert(self._missing)}"

    def _repr_html_(self) -> str:
        bar = f' <progress max="100" value="{int(self._progress)}"></progress>' if self._is_open else ""
        rest = f"{self._error.html()}{bar}{as_html(self._missing)}"
        return f"<div>Task {self._id}: {self._state.html()}{as_html(self._rest)}{rest}</div>"
