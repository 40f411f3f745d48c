"""Commands that are operations: those that operations declare, and `call`, which runs any."""

from workbench.cli.operations import call, declared

__all__ = ["call", "declared"]
