"""Integrating worktrees and kept work: `integrate`, `adopt`."""

from __future__ import annotations

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, drop_none, pass_client


@root.command()
@click.argument("name")
@click.option(
    "--target", "target_branch", default=None, help="Where to merge it; by default the branch it was forked from."
)
@click.option("--fast-forward/--merge-commit", default=None, help="How to merge it; by default as in the settings.")
@pass_client
def integrate(client: OperatorClient, name: str, target_branch: str | None, fast_forward: bool | None) -> Shown:
    """Request the merge of a worktree; `approve` then merges it."""
    how = drop_none(target_branch=target_branch, fast_forward=fast_forward)
    asked = client.call("integrate_worktree", worktree_name=name, **how)
    return Note(f"To merge {name} into {asked['target_branch']}, approve {asked['approval_id']}.", asked)


@root.command()
@click.argument("task_id", type=int)
@click.argument("attempt", type=int)
@click.option(
    "--worktree", "worktree_name", default=None, help="Where to merge it first; by default the attempt's worktree."
)
@pass_client
def adopt(client: OperatorClient, task_id: int, attempt: int, worktree_name: str | None) -> Shown:
    """Use what an attempt made although it did not complete its task; `approve` then merges it."""
    made = client.call("adopt_attempt", task_id=task_id, attempt=attempt, **drop_none(worktree_name=worktree_name))
    text = f"{made['worktree']} has the work of attempt {attempt} at task {task_id}."
    return Note(f"{text} To merge it into {made['target_branch']}, approve {made['approval_id']}.", made)
