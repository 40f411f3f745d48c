"""Integration: `integrate`."""

from __future__ import annotations

import click

from workbench.cli.client import OperatorClient
from workbench.cli.global_options import root
from workbench.cli.output import Note, Shown, drop_none, pass_client


@root.command()
@click.argument("name")
@click.option("--target", "target_branch", default=None, help="Default: the branch it was forked from.")
@click.option("--fast-forward/--merge-commit", default=None, help="Default: the setting.")
@pass_client
def integrate(client: OperatorClient, name: str, target_branch: str | None, fast_forward: bool | None) -> Shown:
    """Ask for a worktree to be merged; `approve` then merges it."""
    how = drop_none(target_branch=target_branch, fast_forward=fast_forward)
    asked = client.call("integrate_worktree", worktree_name=name, **how)
    return Note(f"Approval {asked['approval_id']} merges {name} into {asked['target_branch']}.", asked)
