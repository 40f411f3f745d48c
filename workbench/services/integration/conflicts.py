"""What pending integrations would meet as things are now: conflicts, the worktree's tasks, gates that are not used.

The approvals show it. It is computed again whenever the target, another worktree or a task has changed.
"""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.errors import BadInput, WorkbenchError
from workbench.git import Repository
from workbench.ops import SYSTEM, Ctx
from workbench.ops.duties import duty, refreshes_approvals
from workbench.rules.integration import with_lines
from workbench.rules.tasks.lifecycle import OPEN
from workbench.services import approvals
from workbench.services.approvals import ApprovalInfo
from workbench.services.worktrees.imports import import_new_commits
from workbench.services.worktrees.rows import KIND, of_here, open_worktrees
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

SHOWN_TASKS = 20
SHOWN_FILES = 20
"""How many open and failed tasks an approval names, and how many files of each conflict that it would make."""

log = logging.getLogger(__name__)


@refreshes_approvals
@duty("refreshing approvals", 1.0, share=0.05)
async def refresh(ctx: Ctx) -> None:
    """Bring all pending integrations up to date. A change is announced by `approval.updated`."""
    try:
        await _refresh(ctx.of(SYSTEM))
    except WorkbenchError as error:
        if error.is_of_store:  # logged once for all duties
            raise
        log.warning("the conflicts of pending integrations are not up to date: %s: %s", error.code, error.message)


async def _refresh(ctx: Ctx) -> None:
    if not await approvals.is_pending(ctx, KIND):
        return
    asked, worktrees = await ctx.read(lambda tx: (approvals.pending(tx, KIND), open_worktrees(tx)))
    rows = of_here(ctx, worktrees)
    names = {row["name"] for row in rows}
    pending = [approval for approval in asked if approval.payload["worktree"] in names]
    if not pending:
        return
    repository = await ctx.local.repositories.open()
    await import_new_commits(ctx, repository, rows)
    for approval in pending:
        now = await outlook(ctx, repository, approval.payload)
        if any(approval.payload.get(name) != value for name, value in now.items()):
            await ctx.write(lambda tx, old=approval, new=now: _update(tx, old, new))  # type: ignore[misc]


async def outlook(ctx: Ctx, repository: Repository, what: Mapping[str, Any]) -> dict[str, Any]:
    """The tasks of a worktree, the conflicts of its integration and the gates it goes without, for the approval.

    Args:
        what: the payload of the approval: `worktree`, `source_commit`, `target`.
    """
    worktrees, tasks = await ctx.read(lambda tx: (open_worktrees(tx), _tasks(tx, what["worktree"])))
    rows = of_here(ctx, worktrees)
    commits = await to_thread(repository.heads, {what["target"], *(row["branch_name"] for row in rows)})
    shown = tasks | {"unused_gates": await to_thread(_unused_gates, ctx.settings)}
    if what["target"] not in commits:
        return shown
    return shown | await _predict_conflicts(ctx, repository, what, rows, commits)


def _tasks(tx: Reader, name: str) -> dict[str, Any]:
    """How many of a worktree's tasks are open, failed for good and completed; some of them by id."""
    rows = tx.all(SQL.tasks, name=name)
    failed = [row["task_id"] for row in rows if row["status"] == "failed"]
    open_ids = [row["task_id"] for row in rows if row["status"] in OPEN]
    return {
        "open_tasks": len(open_ids),
        "open_task_ids": open_ids[:SHOWN_TASKS],
        "failed_tasks": len(failed),
        "failed_task_ids": failed[:SHOWN_TASKS],
        "completed_tasks": sum(row["status"] == "completed" for row in rows),
    }


def _unused_gates(settings: Settings) -> list[str]:
    """The gates in the project's file that do not run: it is not trusted, or has changed since the server started."""
    try:
        configured = Settings.of_project(settings.project).get("integration_gates") or ()
    except BadInput:  # the next start says what is wrong in it
        return []
    commands = configured.splitlines() if isinstance(configured, str) else configured
    return [
        gate for gate in commands if isinstance(gate, str) and gate.strip() and gate not in settings.integration_gates
    ]


async def _predict_conflicts(
    ctx: Ctx, repository: Repository, what: Mapping[str, Any], rows: Sequence[Row], commits: Mapping[str, str]
) -> dict[str, Any]:
    name, source, target = what["worktree"], what["source_commit"], what["target"]
    others = {
        row["name"]: commits[row["branch_name"]]
        for row in rows
        if row["name"] != name and row["integration_target"] == target and row["branch_name"] in commits
    }
    facts = await ctx.local.predictions.facts(repository, source, commits[target])
    caused = await ctx.local.predictions.consequences(repository, source, commits[target], others)
    return {
        "behind": facts.behind,
        "conflicts": list(facts.conflicts),
        "makes_conflict": [{"worktree": other, "files": list(caused[other][:SHOWN_FILES])} for other in sorted(caused)],
    }


def _update(tx: Tx, before: ApprovalInfo, now: Mapping[str, Any]) -> None:
    """Update an approval, unless it has been decided or is now about another commit or target."""
    current = approvals.find(tx, before.id)
    if current is None or current.status != "pending":
        return
    if any(current.payload[name] != before.payload[name] for name in ("source_commit", "target")):
        return
    trivial = all(current.payload.get(name) == value for name, value in now.items() if name != "behind")
    approvals.amend(tx, current, with_lines({**current.payload, **now}), quiet=trivial)
