"""The conversations of programs that supervisors keep for the next attempt: forgotten when they serve no more."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import suppress
from pathlib import Path

from workbench.ops import Ctx
from workbench.ops.duties import duty, on_event
from workbench.store.base import Row

DAY = 86_400.0


@on_event("task.completed", "task.cancelled")
def forget(ctx: Ctx, event: Row) -> None:
    """Forget the conversation about a task that has ended."""
    _remove(ctx.settings.agent_sessions / event["subject"].partition(":")[2])


@duty("forgetting old conversations of programs", 3_600.0)
async def forget_old(ctx: Ctx) -> None:
    """Forget those that no attempt has continued for as long as the work of attempts is kept."""
    await asyncio.to_thread(
        _forget_before, ctx.settings.agent_sessions, time.time() - ctx.settings.keep_attempts_days * DAY
    )


def _forget_before(place: Path, at: float) -> None:
    for session in place.glob("*"):
        with suppress(FileNotFoundError):  # its task has ended meanwhile
            if session.stat().st_mtime < at:
                _remove(session)


def _remove(session: Path) -> None:
    shutil.rmtree(session, ignore_errors=True)
