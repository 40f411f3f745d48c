"""Agents: registration, admission with a grant, presence, and changes by the operator (spec 1)."""

from workbench.services.agents import admission, changes, connect, decide, directory, grants, presence, register, rows

__all__ = ["admission", "changes", "connect", "decide", "directory", "grants", "presence", "register", "rows"]
