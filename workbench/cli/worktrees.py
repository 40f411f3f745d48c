"""Worktrees: what they would bring, merging them, giving them up."""

from __future__ import annotations

import click

from workbench.cli.shown import Note, Shown, pass_door
from workbench.door import Door
from workbench.tables import Table


@click.command()
@click.argument("name", required=False)
@pass_door
def worktrees(door: Door, name: str | None) -> Shown:
    """List the worktrees with what they would bring."""
    found = door.call("get_worktree_status", worktree_name=name)["worktrees"]
    rows = [
        [
            w["name"],
            w["branch_name"],
            w["status"],
            w["ahead"],
            w["behind"],
            len(w["files"]),
            len(w["conflicts"]),
            w["open_tasks"],
        ]
        for w in found
    ]
    heads = ["worktree", "branch", "status", "ahead", "behind", "files", "conflicts", "open tasks"]
    return Table(heads, rows, "There is no active worktree.", found)


@click.command()
@click.argument("name")
@click.option("--target", "target_branch", default=None, help="Default: the branch it was forked from.")
@pass_door
def integrate(door: Door, name: str, target_branch: str | None) -> Shown:
    """Ask for a worktree to be merged; `approve` then merges it."""
    asked = door.call("integrate_worktree", worktree_name=name, target_branch=target_branch)
    return Note(f"Approval {asked['approval_id']} merges {name} into {asked['target_branch']}.", asked)


@click.command()
@click.argument("name")
@click.option("--reason", default="", help="Kept in the history.")
@pass_door
def discard(door: Door, name: str, reason: str) -> Shown:
    """Give a worktree up; its branch is kept."""
    made = door.call("discard_worktree", worktree_name=name, reason=reason)
    return Note(f"{name} is discarded; the branch {made['branch_name']} is kept.", made)
