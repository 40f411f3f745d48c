"""Agents: they register, are admitted with a grant, connect, and are managed by a person (spec 1)."""

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
