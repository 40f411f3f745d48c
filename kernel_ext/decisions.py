"""Waits for decisions in a cell, which shows the open questions with buttons meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kernel_ext.hosting.host import KernelHost
from workbench.errors import OneLine

if TYPE_CHECKING:
    from kernel_ext.panels.question import CellQuestion

T = TypeVar("T")

Approvals = list[dict[str, Any]]

WAKE_SECONDS = 0.25
"""How long an interrupt may wait: ipykernel cancels a cell's task without waking its event loop (ipykernel#881)."""


class WaitInterrupted(OneLine, asyncio.CancelledError):
    """A person interrupted a cell that waited; what it waited for goes on."""

    def __init__(self, open_still: str) -> None:
        super().__init__(f"WAIT_INTERRUPTED: The cell was interrupted. {open_still}")


async def wait_for_decisions(host: KernelHost, approval_ids: Sequence[int]) -> Approvals:
    """Wait until these approvals are decided and what they started has ended. Returns them in the same order.

    Raises:
        NotFound: ``APPROVAL_NOT_FOUND``. Unavailable: ``NOT_STARTED``. WaitInterrupted: the cell was interrupted.
    """
    before = await run(host, _read(host, approval_ids))
    pending = [approval["id"] for approval in before if approval["status"] == "pending"]
    if not pending:
        return await run(host, _wait_until_settled(host, before))
    question = _display_question(host, pending)
    try:
        approvals = await run(host, _wait_until_settled(host, before))
    except asyncio.CancelledError:
        question.interrupted()
        raise WaitInterrupted("What is not decided stays open: wb.approvals has it.") from None
    except BaseException:
        question.interrupted()
        raise
    question.answered([approval for approval in approvals if approval["id"] in pending])
    return approvals


def _display_question(host: KernelHost, pending: Sequence[int]) -> CellQuestion:
    from kernel_ext.panels.question import CellQuestion

    question = CellQuestion(host, pending)
    question._ipython_display_()
    return question


async def _read(host: KernelHost, approval_ids: Sequence[int]) -> Approvals:
    return [await host.acall("get_approval", approval_id=number) for number in approval_ids]


async def _wait_until_settled(host: KernelHost, approvals: Approvals) -> Approvals:
    settled = []
    for approval in approvals:
        while not approval["settled"]:
            approval = await host.acall("get_approval", approval_id=approval["id"], wait_seconds=20)
        settled.append(approval)
    return settled


async def run(host: KernelHost, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the host's loop; an interrupt of the cell ends the wait, and cancels it."""
    result = asyncio.wrap_future(host.submit(work))
    try:
        while not result.done():
            await asyncio.wait({result}, timeout=WAKE_SECONDS)
    finally:
        result.cancel()
    return result.result()
