"""The box of commands in a worktree."""

from __future__ import annotations

from workbench.cli.global_options import root


@root.group()
def box() -> None:
    """The box of commands in a worktree: what they are refused, and which setting opens it."""
