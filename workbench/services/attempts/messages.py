"""Messages to the agent of an attempt, as its supervisor passes them on to the agent's program."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.model import Int64, Level, Wire
from workbench.ops import Ctx, op
from workbench.ops.parameters import TaskId
from workbench.services.attempts.work import AttemptNumber
from workbench.services.messages import inbox
from workbench.services.messages.inbox import Message
from workbench.services.tasks import attempts, progress
from workbench.services.tasks.attempts import Key
from workbench.store.base import Reader, Tx


class UnseenMessages(Wire):
    """What an agent has not seen, oldest first."""

    messages: list[Message]


@op(allow=Level.WORKER, tool=False)
async def deliver_to_attempt(
    ctx: Ctx,
    task_id: TaskId,
    attempt: AttemptNumber,
    key: Key,
    taken: Annotated[list[Int64], Field(max_length=1_000, description="Those that its program has got.")] = [],
    after: Annotated[Int64, Field(ge=0, description="Only those after the message with this id.")] = 0,
    wait_seconds: Annotated[float, Field(ge=0, description="Wait this long for one.")] = 0,
) -> UnseenMessages:
    """Get what the agent of an attempt has not seen, as its supervisor; what its program has got is seen.

    Once the agent has ended the attempt, it gets nothing more in it.
    """

    def recipient(tx: Reader) -> str:
        row = progress.held(tx, ctx.caller, task_id, attempt)
        attempts.require_supervisor(tx, task_id, attempt, key)
        return str(row["assigned_agent_id"])

    def change(tx: Tx) -> None:
        me = recipient(tx)
        inbox.mark_seen(tx, me, [message for message in inbox.queued(tx, me, limit=1_000) if message.id in taken])

    def query(tx: Reader) -> list[Message]:
        work = attempts.find_work(tx, task_id, attempt)
        return [] if work is None or attempts.requested_end(work) else inbox.queued(tx, me, after)

    if taken:
        await ctx.write(change)
    me = await ctx.read(recipient)
    seconds = min(wait_seconds, ctx.settings.wait_limit_seconds)
    messages = await ctx.feed.until(query, bool, "message.sent", subject=f"agent:{me}", seconds=seconds)
    return UnseenMessages(messages=messages)
