"""Agents: they register, are admitted with a grant, connect, and are managed by a person (spec 1)."""

from workbench.services.agents import (
    admission,
    connect,
    connections,
    directory,
    grants,
    registration,
)

__all__ = ["admission", "connect", "connections", "directory", "grants", "registration"]
