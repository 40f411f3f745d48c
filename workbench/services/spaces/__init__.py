"""Projects, sessions and teams (spec 1)."""

from workbench.services.spaces import projects, sessions, teams

__all__ = ["projects", "sessions", "teams"]
