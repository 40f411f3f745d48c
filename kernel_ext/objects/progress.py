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
from workbench.present.inert import as_html, inert
from workbench.present.tables import CellOutput, StateCell
from workbench.rules.tasks import lifecycle

READ_SECONDS = 20.0


async def wait_for_task(host: KernelHost, task_id: int) -> None:
    """Wait until a task has ended.

    Raises:
        NotFound: ``TASK_NOT_FOUND``. Unavailable: ``NOT_STARTED``. WaitInterrupted: the cell was interrupted.
    """
    try:
        await _wait(host, task_id)
    except asyncio.CancelledError:
        raise WaitInterrupted(f"Task {task_id} goes on; `await wb.task({task_id})` waits for it again.") from None


async def _wait(host: KernelHost, task_id: int) -> None:
    handle: DisplayHandle | None = None
    state = await run(host, host.acall("wait_for_task", task_id=task_id, wait_seconds=0))
    while state["status"] in lifecycle.OPEN:
        handle = _show(handle, state, await _dead(host, state["blocked_by"]))
        state = await run(
            host, host.acall("wait_for_task", task_id=task_id, until="changed", wait_seconds=READ_SECONDS)
        )
    if handle is not None:
        _show(handle, state)


async def _dead(host: KernelHost, blockers: Sequence[int]) -> dict[int, str]:
    """The states of those of some tasks that will not complete by themselves."""
    if not blockers:
        return {}
    found = (await run(host, host.acall("get_tasks", task_ids=blockers[:TOGETHER])))["tasks"]
    return {one["id"]: one["status"] for one in found if one["status"] in lifecycle.DEAD}


def _show(
    handle: DisplayHandle | None, state: Mapping[str, Any], dead: Mapping[int, str] | None = None
) -> DisplayHandle | None:
    """Show a state in place of the one before; a terminal has no place to do so."""
    if getattr(get_ipython(), "kernel", None) is None:
        return None
    shown = _Standing(state, dead or {})
    if handle is None:
        handle = DisplayHandle()
        handle.display(shown)
    else:
        handle.update(shown)
    return handle


class _Standing:
    """How far a task is, in one line.

    Args:
        dead: the states of those that it waits for in vain.
    """

    def __init__(self, state: Mapping[str, Any], dead: Mapping[int, str]) -> None:

        def blocker(task_id: int) -> str:
            return f"{task_id} ({dead[task_id]}; retry it)" if task_id in dead else str(task_id)

        self._id = state["id"]
        self._state = StateCell.of(state["status"], bool(state["blocked_by"]) and state["status"] == "pending")
        self._is_open = state["status"] in lifecycle.OPEN
        self._progress = state["progress"]
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
        return f"{inert(f'Task {self._id}: {self._state}{self._rest}')}{error}{part}"

    def _repr_html_(self) -> str:
        bar = f' <progress max="100" value="{int(self._progress)}"></progress>' if self._is_open else ""
        return f"<div>Task {self._id}: {self._state.html()}{as_html(self._rest)}{self._error.html()}{bar}</div>"
