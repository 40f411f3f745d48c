"""The history of worktrees: those that were integrated or discarded, with who decided it, when and why."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.model import Int64, Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.rules.integration import WorktreeState
from workbench.services.worktrees.rows import WorktreeName
from workbench.store.base import Row
from workbench.store.queries import beside

SQL = beside(__file__)

DECISION = ("requester", "asker", "requested_at", "decision", "decided_by", "person", "decided_at", "decision_reason")


class DecidedIntegration(Wire):
    """The integration that closed a worktree, or that was pending when it was discarded."""

    approval_id: int
    requester: str
    asker: str | None
    """The name of the person who requested it; null: no person did."""
    requested_at: Micros
    decision: str
    decided_by: str | None
    person: str | None
    """The name of the person who decided; null: no person did."""
    decided_at: Micros | None
    decision_reason: str | None


class ClosedWorktree(Wire):
    """An integrated or discarded worktree. Its name may since have been used again."""

    id: int
    name: str
    branch_name: str
    integration_target: str
    status: WorktreeState
    base_commit: str
    last_commit: str | None
    integrated_commit: str | None
    created_by: str
    created_at: Micros
    closed_by: str
    closed_at: Micros
    reason: str
    branch_kept: bool
    bundle: str | None
    approval: DecidedIntegration | None


class ClosedWorktrees(Wire):
    """Closed worktrees, the last closed first. `next_before` continues the list; null: there are no more."""

    worktrees: list[ClosedWorktree]
    next_before: int | None


@op(allow=Level.READ, reads=True, tool=False, command="worktrees --all", refreshed_by="worktree")
async def list_closed_worktrees(
    ctx: Ctx,
    worktree_name: Annotated[WorktreeName | None, Field(description="Only worktrees that had this name.")] = None,
    before: Annotated[Int64 | None, Field(description="next_before of the previous page.")] = None,
    limit: Annotated[int, Field(ge=1, le=500, description="At most this many.")] = 100,
) -> ClosedWorktrees:
    """List integrated and discarded worktrees, the last closed first: merged commit, who approved it, when, why."""
    rows = await ctx.read(lambda tx: tx.all(SQL.closed, name=worktree_name, before=before, limit=limit + 1))
    more = rows[limit - 1]["id"] if len(rows) > limit else None
    return ClosedWorktrees(worktrees=[_closed_worktree(row) for row in rows[:limit]], next_before=more)


def _closed_worktree(row: Row) -> ClosedWorktree:
    fields = {name: row[name] for name in ClosedWorktree.model_fields if name in row}
    decision = {"approval_id": row["approval_id"], **{name: row[name] for name in DECISION}}
    approval = DecidedIntegration(**decision) if row["approval_id"] else None
    return ClosedWorktree.model_validate({**fields, "approval": approval, "branch_kept": bool(row["branch_kept"])})
