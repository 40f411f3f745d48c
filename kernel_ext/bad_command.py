"""The error for a command of a cell that cannot be run as it is written."""

from __future__ import annotations

from workbench.errors import BadInput


def bad_command(problem: str, advice: str) -> BadInput:
    """The error, with a sentence about the problem; `advice` is what to run for help."""
    return BadInput("BAD_COMMAND", f"{problem} Run `{advice}` for help.")
