"""This project and others side by side."""

from __future__ import annotations

from workbench.analytics.reports.declaration import Standard
from workbench.analytics.reports.standard.comparison import picture, sentence

PROJECTS = Standard(
    "projects",
    "this project and others side by side",
    "There are no tasks yet.",
    sentence,
    picture,
    compares="projects",
)
