"""Questions about the project: `sql`, `views`, `report`."""

from workbench.cli.analysis import reports, sql

__all__ = ["reports", "sql"]
