"""Integrating worktrees: `integrate`."""

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
