"""Where a spawned agent works: in a worktree that the caller may use, or outside of any."""

from __future__ import annotations

import re

from workbench.errors import Conflict, NotFound, Refused
from workbench.ops import Ctx
from workbench.rules import access
from workbench.rules.tasks import lifecycle
from workbench.services.access.personas import require_persona
from workbench.services.tasks.rows import visible_row
from workbench.services.worktrees.creation import create_worktree
from workbench.services.worktrees.kept_work import writer_lock
from workbench.services.worktrees.places import place_of
from workbench.services.worktrees.rows import check_owner, find_worktree
from workbench.store.base import Reader, Row
from workbench.store.queries import beside
from workbench.worker.startup import WorktreePlace

SQL = beside(__file__)


def check(
    tx: Reader, ctx: Ctx, persona_id: str, worktree: str | None, task_id: int | None, new_worktree: bool
) -> str | None:
    """Refuse a persona, task or worktree that cannot be used; the worktree to use, which may be the task's."""
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
    """Refuse a worktree, or none, that the caller's agents may not use.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``. Refused: ``FORBIDDEN``, ``WORKTREE_REQUIRED``.
        BadInput: ``BAD_WORKTREE_NAME``.
    """
    if worktree is None:
        if not ctx.settings.spawn_outside_worktrees:
            raise Refused(
                "WORKTREE_REQUIRED", "Agents have to work in a worktree here. Give assigned_worktree or new_worktree."
            )
        return
    check_owner(ctx.caller, _active(tx, access.check_worktree_name(worktree)))


def _active(tx: Reader, worktree: str) -> Row:
    row = find_worktree(tx, worktree)
    if row is None or row["status"] != "active":
        raise NotFound("WORKTREE_NOT_FOUND", f"There is no active worktree {worktree!r}. Create it first.")
    return row


def place(tx: Reader, ctx: Ctx, worktree: str | None) -> WorktreePlace | None:
    """The directories and the branch of a worktree, for the worker; None for no worktree.

    Raises:
        NotFound: ``WORKTREE_NOT_FOUND``.
    """
    if worktree is None:
        return None
    row = _active(tx, worktree)
    location = place_of(ctx, row)
    writer = writer_lock(ctx.settings, worktree).path
    return WorktreePlace(worktree, location.path, location.git_dir, row["branch_name"], writer)


async def make_worktree(ctx: Ctx, name: str | None, default: str) -> str:
    """Create a worktree for the caller; its name, by default derived from `default`."""
    if name is None:
        base = re.sub(r"[^a-z0-9_-]+", "-", default.lower()).strip("-_")[:40] or "agent"
        taken = {row["name"] for row in await ctx.read(lambda tx: tx.all(SQL.taken_names, prefix=base))}
        name = access.free_id(base, taken)
    return (await create_worktree(ctx, name)).name
