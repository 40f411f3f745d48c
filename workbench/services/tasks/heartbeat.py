"""Heartbeats: an agent renews its leases, and sees the tasks that it holds or could claim (spec 3)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.model import Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.services.agents.rows import activate
from workbench.services.messages import inbox
from workbench.services.messages.inbox import Message
from workbench.services.tasks import attempts
from workbench.services.tasks.attempts import held_by
from workbench.services.tasks.claims import SQL, OwnId, candidates, line_up, require_self, waits_of
from workbench.services.tasks.rows import task_lines
from workbench.services.tasks.task import TaskSummary
from workbench.store.base import Reader, Tx

WaitSeconds = Annotated[float, Field(ge=0, description="Wait this long for a task or a message.")]


class Beat(Wire):
    """The tasks you hold, and when the first of their leases runs out."""

    holding: list[int]
    lease_expires_at: Micros | None


class Available(Wire):
    """Tasks that can be claimed, best first."""

    tasks: list[TaskSummary]


class Finishing(Wire):
    """A task whose end its command has requested; that takes effect when the command exits."""

    task_id: int
    outcome: str


class Work(Wire):
    """The tasks you hold, and those you could claim, best first; and messages to you that are new."""

    holding: list[TaskSummary]
    available: list[TaskSummary]
    lease_expires_at: Micros | None
    finishing: list[Finishing]
    messages: list[Message] = []


@op(allow=Level.WORKER)
async def heartbeat_and_get_tasks(
    ctx: Ctx,
    agent_id: OwnId = None,
    persona_id: Annotated[str | None, Field(description="Optional: your own persona.")] = None,
    wait_seconds: WaitSeconds = 0,
    limit: Annotated[int, Field(ge=1, le=50, description="At most this many tasks.")] = 10,
) -> Work:
    """Renew your leases; list tasks you hold, or could claim, and new messages."""
    me = require_self(ctx.caller, agent_id, persona_id)
    is_supervisor = (ctx.caller.supervised or ctx.caller.commands_only) and ctx.caller.attempt is None
    hears = not is_supervisor  # its command asks for messages itself, or is told them when it begins

    def change(tx: Tx) -> Work:
        _renew(tx, me)
        work = _work(tx, ctx, me, limit)
        if not work.holding:
            line_up(tx, ctx, me, waits_of(tx, ctx))
        return _with_messages(tx, work, me, hears=hears)

    work = await ctx.write(change)
    if work.holding or work.available or work.messages or not wait_seconds:
        return work
    work = await ctx.feed.until(
        lambda tx: _work(tx, ctx, me, limit, hears=hears),
        lambda work: bool(work.available or work.holding or work.messages),
        "task.*",
        "hold.ended",
        "budget.set",
        "resource.changed",
        "message.sent",
        own=f"agent:{me}",
        seconds=min(wait_seconds, ctx.settings.wait_limit_seconds),
    )
    return await ctx.write(lambda tx: _with_messages(tx, work, me, hears=hears)) if work.messages else work


@op(allow=Level.WORKER, tool=False)
async def heartbeat(ctx: Ctx, agent_id: OwnId = None) -> Beat:
    """Renew all your leases and show that you are present."""
    me = require_self(ctx.caller, agent_id)

    def change(tx: Tx) -> Beat:
        _renew(tx, me)
        held = held_by(tx, me)
        return Beat(
            holding=[row["id"] for row in held],
            lease_expires_at=min((row["lease_expires_at"] for row in held), default=None),
        )

    return await ctx.write(change)


@op(allow=Level.WORKER, reads=True, tool=False)
async def get_available_tasks(
    ctx: Ctx, agent_id: OwnId = None, limit: Annotated[int, Field(ge=1, le=500, description="At most this many.")] = 10
) -> Available:
    """List the tasks you could claim now, best first, without claiming one or renewing leases."""
    me = require_self(ctx.caller, agent_id)
    return Available(tasks=await ctx.read(lambda tx: _available(tx, ctx, me, limit)))


def extend_leases(tx: Tx, agent: str, reconnect_us: int) -> list[int]:
    """Renew the leases of an agent (`agent_uid`) that could not do so while no server ran; the tasks that it holds.

    Args:
        reconnect_us: the time that it has to reconnect, in addition to the length of each lease, in microseconds.
    """
    tx.run(SQL.renew, agent=agent, now=tx.now + reconnect_us)
    return [row["id"] for row in held_by(tx, agent)]


def _renew(tx: Tx, me: str) -> None:
    tx.run(SQL.renew, agent=me, now=tx.now)
    tx.run(SQL.beat, agent=me, now=tx.now)
    activate(tx, me)


def _available(tx: Reader, ctx: Ctx, me: str, limit: int) -> list[TaskSummary]:
    rows = candidates(tx, ctx, me, limit)
    return task_lines(tx, [row["task_id"] for row in rows])


def _with_messages(tx: Tx, work: Work, me: str, *, hears: bool) -> Work:
    """The same, with the messages that the agent has not seen, which it has then."""
    return work.model_copy(update={"messages": inbox.mark_seen(tx, me, inbox.queued(tx, me) if hears else [])})


def _work(tx: Reader, ctx: Ctx, me: str, limit: int, *, hears: bool = False) -> Work:
    held = held_by(tx, me)
    return Work(
        holding=task_lines(tx, [row["id"] for row in held]),
        available=_available(tx, ctx, me, limit),
        lease_expires_at=min((row["lease_expires_at"] for row in held), default=None),
        finishing=[
            Finishing(task_id=row["id"], outcome=ending.outcome)
            for row in held
            if (ending := attempts.requested_end(row))
        ],
        messages=inbox.queued(tx, me) if hears else [],
    )
