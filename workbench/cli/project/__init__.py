"""The project itself: `init`."""

from workbench.cli.project import commands

__all__ = ["commands"]
