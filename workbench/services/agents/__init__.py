"""Agents: registration, admission with a grant, presence, and changes by the operator (spec 1)."""

from workbench.services.agents import (
    admission,
    changes,
    connect,
    decide,
    directory,
    expiry,
    grants,
    presence,
    register,
    rows,
    status,
)

__all__ = [
    "admission",
    "changes",
    "connect",
    "decide",
    "directory",
    "expiry",
    "grants",
    "presence",
    "register",
    "rows",
    "status",
]
