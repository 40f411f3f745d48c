"""Tab after a command: the tasks, agents, worktrees, … that the project has."""

from workbench.cli.completion import offers

__all__ = ["offers"]
