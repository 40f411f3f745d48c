"""Questions about the project: `views`, `report`."""

from workbench.cli.analysis import reports, views

__all__ = ["reports", "views"]
