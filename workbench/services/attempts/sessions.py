"""The conversations of programs that supervisors keep for the next attempt: forgotten when they serve no more.

Alone: the others here are about one attempt, and this is about what is kept between two.
"""

from __future__ import annotations

import asyncio
import shutil
import time

from workbench.ops import Ctx
from workbench.ops.duties import duty, on_event
from workbench.store.base import Row
from workbench.worker.sessions import DAY, forget_before


@on_event("task.completed", "task.cancelled")
def forget(ctx: Ctx, event: Row) -> None:
    """Forget the conversation about a task that has ended."""
    shutil.rmtree(ctx.settings.agent_sessions / event["subject"].partition(":")[2], ignore_errors=True)


@duty("forgetting old conversations of programs", 3_600.0)
async def forget_old(ctx: Ctx) -> None:
    """Forget those that no attempt has continued for as long as the work of attempts is kept."""
    at = time.time() - ctx.settings.keep_attempts_days * DAY
    await asyncio.to_thread(forget_before, ctx.settings.agent_sessions, at)
