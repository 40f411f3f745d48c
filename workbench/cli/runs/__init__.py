"""Runs of experiments: `runs`."""

from workbench.cli.runs import commands

__all__ = ["commands"]
