"""Predicted conflicts of the active worktrees with their targets and with each other (spec 3)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from workbench.git import Repository
from workbench.git.predictions import Branches, PredictedConflict, Scan
from workbench.model import Level, Micros, Wire
from workbench.ops import Command, Ctx, op
from workbench.ops.duties import duty
from workbench.services.worktrees.imports import import_new_commits
from workbench.services.worktrees.rows import of_here, open_worktrees

EVENT_PAIRS = 200
EVENT_FILES = 20
"""How many conflicts an event lists, and how many files of each."""


class Pair(Wire):
    """A predicted conflict between two worktrees, or between a worktree and its target (`is_target`)."""

    one: str
    other: str
    is_target: bool
    files: list[str]


class ConflictsPredicted(Wire):
    """The predicted conflicts of the active worktrees, and how many pairs were checked."""

    commits: dict[str, str]
    pairs: list[Pair]
    checked: int
    checked_at: Micros


@op(allow=Level.READ, reads=True, command=Command("worktrees conflicts"), refreshed_by="worktree")
async def list_conflicts(ctx: Ctx) -> ConflictsPredicted:
    """List the predicted conflicts of the active worktrees with each other and with their targets, with the files."""
    predicted = await _import_and_scan(ctx)
    pairs = [Pair(**asdict(pair)) for pair in predicted.conflicts]
    return ConflictsPredicted(
        commits=dict(predicted.commits), pairs=pairs, checked=predicted.checked, checked_at=ctx.store.now()
    )


async def scan(ctx: Ctx, repository: Repository) -> Scan:
    """Compare all active worktrees, by their branches in the user's repository."""
    rows = of_here(ctx, await ctx.read(open_worktrees))
    branches = {row["name"]: Branches(row["branch_name"], row["integration_target"]) for row in rows}
    return await ctx.local.predictions.scan(repository, branches)


async def _import_and_scan(ctx: Ctx) -> Scan:
    rows = of_here(ctx, await ctx.read(open_worktrees))
    if not rows:
        return Scan()
    repository = await ctx.local.repositories.open()
    await import_new_commits(ctx, repository, rows)
    return await scan(ctx, repository)


@duty("predicting conflicts", 1.0, share=0.05)
async def watch(ctx: Ctx) -> None:
    """Scan, and emit an event if the predicted conflicts differ from those in the last event."""
    predicted = await _import_and_scan(ctx)
    pairs = [_event_pair(pair) for pair in predicted.conflicts[:EVENT_PAIRS]]
    if pairs != ctx.local.predictions.announced:
        ctx.local.predictions.announced = pairs
        await ctx.write(lambda tx: tx.emit("worktree.conflicts_changed", "worktree:*", pairs=pairs))


def _event_pair(pair: PredictedConflict) -> dict[str, Any]:
    files = list(pair.files[:EVENT_FILES])
    return {"one": pair.one, "other": pair.other, "is_target": pair.is_target, "files": files}
