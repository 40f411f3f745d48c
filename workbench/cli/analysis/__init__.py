"""Questions about the project: `sql`, `views`, `report`."""

from workbench.cli.analysis import reports, sql, views

__all__ = ["reports", "sql", "views"]
