"""The project itself: `init`, and its store: `backup`, `restore`."""

from workbench.cli.project import backups, commands

__all__ = ["backups", "commands"]
