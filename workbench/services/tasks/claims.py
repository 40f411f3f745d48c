"""Claiming tasks under a lease (spec 3)."""

from __future__ import annotations

import json
from asyncio import to_thread
from contextlib import suppress
from typing import Annotated, Any

from pydantic import Field

from workbench.confinement import lending
from workbench.errors import BadInput, Conflict, Refused
from workbench.model import Int64, Level, TaskState, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules.tasks.claiming import Claimant, ClaimCandidate, obstacles
from workbench.services import holds
from workbench.services.messages import inbox
from workbench.services.resources import leases, machine
from workbench.services.resources.leases import Waits
from workbench.services.spending import budgets, spent
from workbench.services.tasks.attempts import held_by
from workbench.services.tasks.rows import (
    blockers,
    require_row,
    require_task,
    task_of,
    visible_row,
)
from workbench.services.tasks.task import Assignment, TaskInfo
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

OwnId = Annotated[str | None, Field(description="Your own id; no other.")]


class ClaimedTask(Wire):
    """The claimed task, or null when none can be claimed.

    `worktree_path` is the directory to do it in, and to change nothing outside of: a checkout of the worktree's branch.
    `variables`: set these in your commands, which then use the devices that the task was given, and no others.
    """

    task: Assignment | None
    worktree_path: str | None = None
    variables: dict[str, str] = {}


@op(allow=Level.WORKER)
async def claim_task(
    ctx: Ctx,
    task_id: Annotated[Int64 | None, Field(description="The task to claim; null: the best one for you.")] = None,
    agent_id: OwnId = None,
) -> ClaimedTask:
    """Claim a task under a lease: the one you name; else the one you already hold; else the best one for you."""
    me = require_self(ctx.caller, agent_id)
    claim = await ctx.write(lambda tx: _claim(tx, ctx, me, task_id))
    if claim.task is None:
        return claim
    update: dict[str, Any] = {}
    if claim.task.worktree is not None:
        update["worktree_path"] = str(ctx.settings.worktree(claim.task.worktree))
    leased = claim.task.attempts[-1].leased
    if leased and leased.machine is None:
        with suppress(Conflict):  # a device is there no more: the task is yours, and says what it holds
            update["variables"] = (await to_thread(lending.lent, ctx.settings, leased.model_dump())).variables
    return claim.model_copy(update=update)


def require_self(caller: Caller, agent_id: str | None, persona_id: str | None = None) -> str:
    """The caller's `agent_uid`. The ids that spec 3 has as arguments must be the caller's own.

    Raises:
        Refused: ``FORBIDDEN``. BadInput: ``AGENT_ONLY`` (the operator holds no leases).
    """
    if caller.agent is None:
        raise BadInput("AGENT_ONLY", "Only an agent can hold tasks. Call this with an agent's token.")
    if agent_id not in (None, caller.name):
        raise Refused("FORBIDDEN", f"You are {caller.name}, not {agent_id}. Leave agent_id out.")
    if persona_id is not None and persona_id.lower() != caller.persona:
        raise Refused("FORBIDDEN", f"Your persona is {caller.persona}, not {persona_id}.")
    return caller.agent


def candidates(tx: Reader, ctx: Ctx, me: str, limit: int) -> list[Row]:
    """Claimable tasks: those reserved for the caller first, then others of its persona; by priority, then age.

    None for an agent whose session is deleted, that is held (`workbench.services.holds`), or whose budget is used up.
    """
    return _candidates(tx, ctx, me, limit, waits_of(tx, ctx))


def waits_of(tx: Reader, ctx: Ctx) -> Waits:
    """What the caller cannot begin now on its machine."""
    return leases.waits(tx, ctx.settings, machine.of_caller(tx, ctx).only)


def _candidates(tx: Reader, ctx: Ctx, me: str, limit: int, waits: Waits, needs: str | None = None) -> list[Row]:
    """As `candidates`, or with `needs` those that wait for just these, as they are stored."""
    caller = ctx.caller
    if _deleted_session(tx, caller) or holds.active(tx, me) or budgets.obstacle(tx, None, me):
        return []
    place = {"worktree": caller.worktree or "", "session": caller.session or "", "commands": int(caller.commands_only)}
    place |= {"machine": ctx.local.machine.only}
    place |= {"unmet": waits.unmet, "waiting": 0, "alone": waits.alone}
    place |= {} if needs is None else {"unmet": json.dumps([needs]), "waiting": 1, "alone": 0}
    return tx.all(SQL.candidates, place | {"agent": me, "persona": caller.persona, "limit": limit})


def line_up(tx: Tx, ctx: Ctx, me: str, waits: Waits) -> None:
    """Have the first tasks that the caller could do, if they were not short of something, wait for their turn."""
    here = machine.of_caller(tx, ctx) if waits.short else ctx.local.machine
    for needs in waits.short:
        for row in _candidates(tx, ctx, me, 1, waits, needs):
            leases.note_wait(tx, here, row)


def _deleted_session(tx: Reader, caller: Caller) -> str | None:
    """The name of the caller's session, if that, or its project, is deleted."""
    row = tx.one(SQL.deleted_session, id=caller.session) if caller.session else None
    return str(row["name"]) if row else None


def _claim(tx: Tx, ctx: Ctx, me: str, task_id: int | None) -> ClaimedTask:
    held = [row["id"] for row in held_by(tx, me)]
    if held and task_id in (None, *held):
        return ClaimedTask(task=_assignment(tx, require_task(tx, task_id or held[0]), me))
    if task_id is not None:
        row = visible_row(tx, ctx.caller, task_id)
        _require_claimable(tx, row, ctx, me)
        return ClaimedTask(task=_take(tx, ctx, me, task_id, waits_of(tx, ctx)))
    waits = waits_of(tx, ctx)
    line_up(tx, ctx, me, waits)
    if waits.short:  # what waits long enough has its turn now
        waits = waits_of(tx, ctx)
    while best := _candidates(tx, ctx, me, 1, waits):
        if task := _take(tx, ctx, me, best[0]["task_id"], waits):
            return ClaimedTask(task=task)
    return ClaimedTask(task=None)


def _require_claimable(tx: Reader, row: Row, ctx: Ctx, me: str) -> None:
    """Refuse an agent that cannot claim a task now, with every reason.

    Raises:
        Conflict: ``ON_ANOTHER_MACHINE``.
        Conflict: ``TASK_NOT_CLAIMABLE``; `details.reasons` are the codes of `ClaimReason` and `details.blocked_by` the
            dependencies that the task waits for.
    """
    caller, unmet = ctx.caller, blockers(tx, row)
    if row["worktree"] and (place := tx.one(SQL.machine_of, worktree=row["worktree"])):
        ctx.local.machine.require(place["machine"], f"The worktree {row['worktree']} of task {row['id']}")
    candidate = ClaimCandidate(
        status=TaskState(row["status"]),
        holder=row["holder"],
        persona=row["persona_id"],
        worktree=row["worktree"] or None,
        reserved_for=row["reserved_for"],
        reserved_name=row["reserved_name"],
        waits=unmet,
        not_before=row["not_before"],
        has_command=row["run"] is not None,
        unaffordable=budgets.obstacle(tx, row["id"], me),
        approval=row["approval_id"],
        lacks=leases.obstacle(tx, ctx.settings, machine.of_caller(tx, ctx).only, row["id"]),
    )
    deleted = _deleted_session(tx, caller)
    hold = holds.active(tx, me)
    held = holds.words(hold) if hold else None
    claimant = Claimant(me, caller.persona, caller.worktree, caller.commands_only, deleted, held)
    if found := obstacles(candidate, claimant):
        raise Conflict(
            "TASK_NOT_CLAIMABLE",
            f"Task {row['id']} cannot be claimed: {'; '.join(found.values())}.",
            status=row["status"],
            reasons=[str(reason) for reason in found],
            blocked_by=list(unmet),
        )


def _take(tx: Tx, ctx: Ctx, me: str, task_id: int, waits: Waits) -> Assignment | None:
    """Claim a task; None if it cannot be claimed now."""
    if not tx.run(SQL.claim, task_id=task_id, agent=me, now=tx.now):
        return None
    row = require_row(tx, task_id)
    place = spent.place(tx, task_id, me)
    begun = {"task_id": task_id, "attempt": row["attempt"], "agent": me, "machine": ctx.local.machine.name}
    tx.run(SQL.add_attempt, place.columns, **begun, now=tx.now)
    leased = leases.take(tx, machine.of_caller(tx, ctx), task_id, row["attempt"]) if waits.is_any else None
    spent.begin(tx, place.scopes)
    budgets.follow(tx, place.scopes)
    tx.emit("task.claimed", f"task:{task_id}", session=row["session_id"], attempt=row["attempt"])
    return _assignment(tx, task_of(tx, {**row, "leased": leased}), me)


def _assignment(tx: Tx, task: TaskInfo, me: str) -> Assignment:
    return Assignment.model_construct(**dict(task), messages=inbox.of_assignment(tx, me, task.id))
