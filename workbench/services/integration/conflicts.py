"""What pending integrations would meet as things are now: conflicts with the target, conflicts made, open tasks.

The approvals show it. It is computed again whenever the target, another worktree or a task has changed.
"""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import WorkbenchError
from workbench.git import Repository
from workbench.ops import SYSTEM, Ctx
from workbench.services import approvals
from workbench.services.approvals import Approval
from workbench.services.worktrees.imports import import_new_commits
from workbench.services.worktrees.rows import KIND, open_worktrees
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

SHOWN_TASKS = 20
SHOWN_FILES = 20
"""How many open tasks an approval names, and how many files of each conflict that it would make."""

log = logging.getLogger(__name__)


async def refresh(ctx: Ctx) -> None:
    """Bring all pending integrations up to date. A change is announced by `approval.updated`."""
    try:
        await _refresh(ctx.of(SYSTEM))
    except WorkbenchError as error:
        log.warning("the conflicts of pending integrations are not up to date: %s: %s", error.code, error.message)


async def _refresh(ctx: Ctx) -> None:
    pending = await ctx.read(lambda tx: approvals.pending(tx, KIND))
    if not pending:
        return
    rows = await ctx.read(open_worktrees)
    repository = await ctx.repositories.open()
    await import_new_commits(ctx, repository, rows)
    for approval in pending:
        now = await outlook(ctx, repository, approval.payload)
        if any(approval.payload.get(name) != value for name, value in now.items()):
            await ctx.write(lambda tx, old=approval, new=now: _amend(tx, old, new))  # type: ignore[misc]


async def outlook(ctx: Ctx, repository: Repository, what: Mapping[str, Any]) -> dict[str, Any]:
    """The open tasks of a worktree and the conflicts of its integration, as the approval shows them.

    Args:
        what: the payload of the approval: `worktree`, `source_commit`, `target`.
    """
    rows, tasks = await ctx.read(lambda tx: (open_worktrees(tx), _open_tasks(tx, what["worktree"])))
    commits = await to_thread(repository.heads, {what["target"], *(row["branch_name"] for row in rows)})
    shown = {"open_tasks": len(tasks), "open_task_ids": tasks[:SHOWN_TASKS]}
    if what["target"] not in commits:
        return shown
    return shown | await _conflicts(ctx, repository, what, rows, commits)


def _open_tasks(tx: Reader, name: str) -> list[int]:
    return [row["task_id"] for row in tx.all(SQL.open_tasks, name=name)]


async def _conflicts(
    ctx: Ctx, repository: Repository, what: Mapping[str, Any], rows: Sequence[Row], commits: Mapping[str, str]
) -> dict[str, Any]:
    name, source, target = what["worktree"], what["source_commit"], what["target"]
    others = {
        row["name"]: commits[row["branch_name"]]
        for row in rows
        if row["name"] != name and row["integration_target"] == target and row["branch_name"] in commits
    }
    facts = await ctx.predictions.facts(repository, source, commits[target])
    made = await ctx.predictions.consequences(repository, source, commits[target], others)
    return {
        "behind": facts.behind,
        "conflicts": list(facts.conflicts),
        "makes_conflict": [{"worktree": other, "files": list(made[other][:SHOWN_FILES])} for other in sorted(made)],
    }


def _amend(tx: Tx, before: Approval, now: Mapping[str, Any]) -> None:
    """Update an approval, unless it has been decided or is now about another commit or target."""
    current = approvals.find(tx, before.id)
    if current is None or current.status != "pending":
        return
    if any(current.payload[name] != before.payload[name] for name in ("source_commit", "target")):
        return
    trivial = all(current.payload.get(name) == value for name, value in now.items() if name != "behind")
    approvals.amend(tx, current, {**current.payload, **now}, quiet=trivial)
