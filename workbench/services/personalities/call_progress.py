"""How far a call of another node is: reports that are signed and sent to it, if it follows the call."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from rid_lib.types import KoiNetNode

from workbench.functions.progress import CallReports, Report
from workbench.koi.envelope import signed
from workbench.koi.identity import NodeIdentity
from workbench.koi.payloads import LONGEST_MESSAGE, TraitProgress
from workbench.ops import Ctx
from workbench.rules.tools.results import shortened
from workbench.rules.tools.surroundings import ProgressReceiver

PAUSE_SECONDS = 0.5
"""Between two reports; of those in between, the last is sent."""

Send = Callable[[bytes], Awaitable[None]]
"""Sends an envelope."""


@contextmanager
def reporting(
    ctx: Ctx, me: NodeIdentity, caller: KoiNetNode, call_id: str, send: Send | None
) -> Iterator[ProgressReceiver | None]:
    """What a tool reports to within the block: it is sent to the caller, signed, with secrets masked, without waiting.

    Args:
        send: None: the caller does not follow the call.
    """
    if send is None:
        yield None
        return
    number = 0

    async def pass_on(report: Report) -> None:
        nonlocal number
        number += 1
        done, total, message = report
        text = None if message is None else shortened(str(ctx.secrets.masked(message)), LONGEST_MESSAGE)
        made = TraitProgress(call_id=call_id, number=number, progress=done, total=total, message=text)
        await send(signed(me, made, caller))

    async def note(progress: float, total: float | None, message: str | None) -> None:
        if math.isfinite(progress) and (total is None or math.isfinite(total)):
            reports.write((progress, total, message))

    reports = CallReports(pass_on, PAUSE_SECONDS)
    try:
        yield note
    finally:
        reports.close()
