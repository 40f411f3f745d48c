"""`workbench sweep`: runs a notebook once for each combination of values."""

from workbench.cli.sweeps.command import sweep

__all__ = ["sweep"]
