"""Coming conflicts of the active worktrees, with their targets and with each other (spec 3)."""

from __future__ import annotations

from typing import Any

from workbench.git import Repository
from workbench.git.predictions import Branches, Conflict, Scan
from workbench.model import Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.services.worktrees.imports import import_new_commits
from workbench.services.worktrees.rows import open_worktrees

TOLD_PAIRS = 200
TOLD_FILES = 20
"""How many conflicts an event names, and how many files of each."""


class Pair(Wire):
    """Two that would be in conflict: two worktrees, or a worktree and its target (`is_target`)."""

    one: str
    other: str
    is_target: bool
    files: list[str]


class ConflictsPredicted(Wire):
    """All coming conflicts of the active worktrees, and how many pairs were looked at."""

    commits: dict[str, str]
    pairs: list[Pair]
    checked: int
    checked_at: Micros


@op(allow=Level.READ, reads=True)
async def list_conflicts(ctx: Ctx) -> ConflictsPredicted:
    """Which active worktrees would be in conflict, with each other or with their targets, and about which files."""
    found = await _import_and_scan(ctx)
    pairs = [
        Pair(one=pair.one, other=pair.other, is_target=pair.is_target, files=list(pair.files))
        for pair in found.conflicts
    ]
    return ConflictsPredicted(
        commits=dict(found.commits), pairs=pairs, checked=found.checked, checked_at=ctx.store.now()
    )


async def scan(ctx: Ctx, repository: Repository) -> Scan:
    """Compare all active worktrees, as the person's repository has their branches."""
    rows = await ctx.read(open_worktrees)
    branches = {row["name"]: Branches(row["branch_name"], row["integration_target"]) for row in rows}
    return await ctx.predictions.scan(repository, branches)


async def _import_and_scan(ctx: Ctx) -> Scan:
    rows = await ctx.read(open_worktrees)
    if not rows:
        return Scan()
    repository = await ctx.repositories.open()
    await import_new_commits(ctx, repository, rows)
    return await scan(ctx, repository)


async def watch(ctx: Ctx) -> None:
    """Scan, and emit an event if other conflicts are coming than the last event named."""
    found = await _import_and_scan(ctx)
    named = [_named(pair) for pair in found.conflicts[:TOLD_PAIRS]]
    if named != ctx.predictions.announced:
        ctx.predictions.announced = named
        await ctx.write(lambda tx: tx.emit("worktree.conflicts_changed", "worktree:*", pairs=named))


def _named(pair: Conflict) -> dict[str, Any]:
    files = list(pair.files[:TOLD_FILES])
    return {"one": pair.one, "other": pair.other, "is_target": pair.is_target, "files": files}
