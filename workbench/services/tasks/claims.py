"""Claiming tasks under a lease (spec 3)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput, Conflict, Refused
from workbench.model import Int64, Level, TaskState, Wire
from workbench.ops import Caller, Ctx, op
from workbench.rules.tasks.claiming import Claimant, ClaimCandidate, obstacles
from workbench.services import holds
from workbench.services.messages import inbox
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
    """

    task: Assignment | None
    worktree_path: str | None = None


@op(allow=Level.WORKER)
async def claim_task(
    ctx: Ctx,
    task_id: Annotated[Int64 | None, Field(description="The task to claim; null: the best one for you.")] = None,
    agent_id: OwnId = None,
) -> ClaimedTask:
    """Claim a task under a lease: the one you name; else the one you already hold; else the best one for you."""
    me = require_self(ctx.caller, agent_id)
    claim = await ctx.write(lambda tx: _claim(tx, ctx.caller, me, task_id))
    if claim.task is None or claim.task.worktree is None:
        return claim
    return claim.model_copy(update={"worktree_path": str(ctx.settings.worktree(claim.task.worktree))})


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


def candidates(tx: Reader, caller: Caller, me: str, limit: int) -> list[Row]:
    """Claimable tasks: those reserved for the caller first, then others of its persona; by priority, then age.

    None for an agent whose session is deleted, that is held (`workbench.services.holds`), or whose budget is used up.
    """
    if _deleted_session(tx, caller) or holds.active(tx, me) or budgets.obstacle(tx, None, me):
        return []
    place = {"worktree": caller.worktree or "", "session": caller.session or "", "commands": int(caller.commands_only)}
    return tx.all(SQL.candidates, place | {"agent": me, "persona": caller.persona, "limit": limit})


def _deleted_session(tx: Reader, caller: Caller) -> str | None:
    """The name of the caller's session, if that, or its project, is deleted."""
    row = tx.one(SQL.deleted_session, id=caller.session) if caller.session else None
    return str(row["name"]) if row else None


def _claim(tx: Tx, caller: Caller, me: str, task_id: int | None) -> ClaimedTask:
    held = [row["id"] for row in held_by(tx, me)]
    if held and task_id in (None, *held):
        return ClaimedTask(task=_assignment(tx, require_task(tx, task_id or held[0]), me))
    if task_id is not None:
        row = visible_row(tx, caller, task_id)
        _require_claimable(tx, row, caller, me)
        return ClaimedTask(task=_take(tx, me, task_id))
    while best := candidates(tx, caller, me, 1):
        if task := _take(tx, me, best[0]["task_id"]):
            return ClaimedTask(task=task)
    return ClaimedTask(task=None)


def _require_claimable(tx: Reader, row: Row, caller: Caller, me: str) -> None:
    """Refuse an agent that cannot claim a task now, with every reason.

    Raises:
        Conflict: ``TASK_NOT_CLAIMABLE``; `details.reasons` are the codes of `ClaimReason` and `details.blocked_by` the
            dependencies that the task waits for.
    """
    unmet = blockers(tx, row)
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


def _take(tx: Tx, me: str, task_id: int) -> Assignment | None:
    """Claim a task; None if it cannot be claimed now."""
    if not tx.run(SQL.claim, task_id=task_id, agent=me, now=tx.now):
        return None
    row = require_row(tx, task_id)
    place = spent.place(tx, task_id, me)
    tx.run(SQL.add_attempt, place.columns, task_id=task_id, attempt=row["attempt"], agent=me, now=tx.now)
    spent.begin(tx, place.scopes)
    budgets.follow(tx, place.scopes)
    tx.emit("task.claimed", f"task:{task_id}", session=row["session_id"], attempt=row["attempt"])
    return _assignment(tx, task_of(tx, row), me)


def _assignment(tx: Tx, task: TaskInfo, me: str) -> Assignment:
    return Assignment.model_construct(**dict(task), messages=inbox.of_assignment(tx, me, task.id))
