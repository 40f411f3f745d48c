"""A worktree as it is stored and shown: its owner, its state, and the changes of its state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.errors import NotFound, Refused
from workbench.model import Level, Micros, Wire
from workbench.ops import Caller, Ctx
from workbench.rules import integration
from workbench.rules.integration import WorktreeAction, WorktreeState
from workbench.state.root import STATE
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
KIND = "integration"

WorktreeName = Annotated[
    str, Field(min_length=1, max_length=50, description="The worktree's name; see get_worktree_status.")
]
Branch = Annotated[str, Field(min_length=1, max_length=200, description="A branch's name.")]


class WorktreeInfo(Wire):
    """A worktree and its state."""

    name: str
    branch_name: str
    integration_target: str
    status: WorktreeState
    machine: str
    """The machine that has its files and commits."""
    path: str
    """Where its files are; on another machine, ``MACHINE:`` and the path in the clone there."""
    created_by: str
    created_at: Micros
    integrated_commit: str | None
    confined: bool


def open_worktrees(tx: Reader) -> list[Row]:
    """The worktrees that are neither integrated nor discarded, oldest first."""
    return tx.all(SQL.open)


def all_worktrees(tx: Reader) -> list[Row]:
    """All worktrees, including closed ones, oldest first."""
    return tx.all(SQL.all)


def find_worktree(tx: Reader, name: str) -> Row | None:
    """A worktree in any state; None if there is none."""
    return tx.one(SQL.get, name=name)


def require_worktree(tx: Reader, name: str) -> Row:
    """A worktree in any state.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``.
    """
    row = find_worktree(tx, name)
    if row is None:
        raise NotFound("WORKTREE_NOT_FOUND", f"There is no worktree {name!r}.")
    return row


def require_own_worktree(tx: Reader, caller: Caller, name: str, action: WorktreeAction) -> Row:
    """A worktree whose state permits `action`, and which the caller may manage: planners manage only their own.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Conflict: ``WORKTREE_CLOSED``. Refused: ``FORBIDDEN``.
    """
    row = require_worktree(tx, name)
    check_owner(caller, row)
    integration.step(name, row["status"], action)
    return row


def check_owner(caller: Caller, row: Row) -> None:
    """Refuse a caller other than the operator and the worktree's creator.

    Raises:
        Refused: ``FORBIDDEN``.
    """
    if caller.level is not Level.OPERATOR and row["creator"] != caller.agent:
        raise Refused("FORBIDDEN", f"The worktree {row['name']} belongs to {row['created_by']}.")


def require_worktree_for(tx: Reader, name: str, action: WorktreeAction) -> Row:
    """A worktree whose state permits `action`.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Conflict: ``WORKTREE_CLOSED``.
    """
    row = require_worktree(tx, name)
    integration.step(name, row["status"], action)
    return row


def set_worktree_status(tx: Tx, name: str, action: WorktreeAction) -> None:
    """Change the state of a worktree.

    Raises:
        Conflict: ``WORKTREE_CLOSED``.
    """
    before = require_worktree(tx, name)["status"]
    tx.run(SQL.set_status, name=name, before=before, status=str(integration.step(name, before, action)))


@dataclass(frozen=True, slots=True)
class Closing:
    """How a worktree was closed: the approval, if there was one, the branch it was merged into, why, what is left."""

    approval_id: int | None = None
    target: str | None = None
    reason: str = ""
    branch_kept: bool = True
    bundle: str | None = None


def close_worktree(tx: Tx, row: Row, action: WorktreeAction, commit: str | None, how: Closing = Closing()) -> None:
    """Set the final state of a worktree, record it in the history, and delete its integration request."""
    name, before = row["name"], require_worktree(tx, row["name"])["status"]
    after = integration.step(name, before, action)
    tx.run(SQL.close, name=name, status=str(after), before=before, commit=commit, now=tx.now)
    closing = asdict(how) | {"target": how.target or row["integration_target"], "branch_kept": int(how.branch_kept)}
    tx.run(SQL.record_closed, {**closing, "name": name, "by": tx.actor})
    forget_question(tx, name)


def forget_question(tx: Tx, name: str) -> None:
    """Delete the integration request of a worktree; its approval stays."""
    tx.run(SQL.forget_question, name=name)


def require_here(ctx: Ctx, row: Row) -> Row:
    """A worktree whose files this machine has.

    Raises:
        Conflict: ``ON_ANOTHER_MACHINE``.
    """
    ctx.local.machine.require(row["machine"], f"The worktree {row['name']}")
    return row


def of_here(ctx: Ctx, rows: Iterable[Row]) -> list[Row]:
    """Those worktrees whose files this machine has."""
    return [row for row in rows if ctx.local.machine.has(row["machine"])]


def worktree_of(ctx: Ctx, row: Row) -> WorktreeInfo:
    """A worktree as it is shown."""
    settings, is_here = ctx.settings, ctx.local.machine.has(row["machine"])
    path = settings.worktree(row["name"]) if is_here else Path(STATE, "worktrees", row["name"])
    machine = row["machine"] or ctx.local.machine.name
    return WorktreeInfo(
        name=row["name"],
        branch_name=row["branch_name"],
        integration_target=row["integration_target"],
        status=row["status"],
        machine=machine,
        path=str(path) if is_here else f"{machine}:{path}",
        created_by=row["created_by"],
        created_at=row["created_at"],
        integrated_commit=row["integrated_commit"],
        confined=bool(row["confined"]),
    )
