"""This project and others side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.standard import comparison

if TYPE_CHECKING:
    import pandas


def sentence(frame: pandas.DataFrame) -> str:
    """What was compared, and which was fastest; alone, how to name others."""
    if len(frame) > 1:
        return comparison.sentence(frame)
    return (
        "This is this project alone. Directories that are given after the report's name are others to compare it with."
    )


PROJECTS = Standard(
    "projects",
    "this project and others side by side",
    "There are no tasks yet.",
    sentence,
    comparison.picture,
    compares="projects",
)
