"""Where an agent works: in a worktree that its spawner may use, or outside of any."""

from __future__ import annotations

import re

from workbench.errors import Conflict, NotFound, Refused
from workbench.ops import Ctx
from workbench.rules import access
from workbench.rules.tasks import lifecycle
from workbench.services.access.personas import require_persona
from workbench.services.tasks.rows import visible_row
from workbench.services.worktrees.creation import create_worktree
from workbench.services.worktrees.places import place_of
from workbench.services.worktrees.rows import check_owner, find_worktree
from workbench.store.base import Reader, Row
from workbench.store.queries import beside
from workbench.worker.startup import WorktreePlace

SQL = beside(__file__)


def check(
    tx: Reader, ctx: Ctx, persona_id: str, worktree: str | None, task_id: int | None, new_worktree: bool
) -> str | None:
    """Refuse what could never work; the worktree that was meant."""
    persona = require_persona(tx, persona_id)
    if task_id is not None:
        task = visible_row(tx, ctx.caller, task_id)
        if task["status"] not in lifecycle.OPEN:
            raise Conflict("WRONG_STATE", f"Task {task_id} is {task['status']}.", status=task["status"])
        if task["persona_id"] != persona.id or (task["worktree"] and worktree not in (None, task["worktree"])):
            where = f" in the worktree {task['worktree']}" if task["worktree"] else ""
            raise Conflict("TASK_DOES_NOT_FIT", f"Task {task_id} is for a {task['persona_id']}{where}.")
        worktree = worktree or task["worktree"] or None
    if not new_worktree:
        check_place(tx, ctx, worktree)
    return worktree


def check_place(tx: Reader, ctx: Ctx, worktree: str | None) -> None:
    """Refuse a place where no agent of the caller's may work.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Refused: ``FORBIDDEN``, ``WORKTREE_REQUIRED``.
        BadInput: ``BAD_WORKTREE_NAME``.
    """
    if worktree is None:
        if not ctx.settings.spawn_outside_worktrees:
            raise Refused("WORKTREE_REQUIRED", "Agents work in worktrees here. Name one, or ask for a new one.")
        return
    check_owner(ctx.caller, _active(tx, access.check_worktree_name(worktree)))


def _active(tx: Reader, worktree: str) -> Row:
    row = find_worktree(tx, worktree)
    if row is None or row["status"] != "active":
        raise NotFound("WORKTREE_NOT_FOUND", f"There is no active worktree {worktree!r}. Create it first.")
    return row


def place(tx: Reader, ctx: Ctx, worktree: str | None) -> WorktreePlace | None:
    """Where a worktree lies and its branch, for the worker; None outside of any.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``.
    """
    if worktree is None:
        return None
    row = _active(tx, worktree)
    lies = place_of(ctx, row)
    return WorktreePlace(worktree, lies.path, lies.git_dir, row["branch_name"])


async def make_worktree(ctx: Ctx, name: str | None, like: str) -> str:
    """A new worktree of the caller's; its name."""
    if name is None:
        base = re.sub(r"[^a-z0-9_-]+", "-", like.lower()).strip("-_")[:40] or "agent"
        taken = {row["name"] for row in await ctx.read(lambda tx: tx.all(SQL.taken_names, prefix=base))}
        name = access.free_id(base, taken)
    return (await create_worktree(ctx, name)).name
