"""Questions about the project: `views`."""

from workbench.cli.analysis import views

__all__ = ["views"]
