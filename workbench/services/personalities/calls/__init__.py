"""Calls of this node's traits by other nodes, and what each of them may call."""

from workbench.services.personalities.calls import permissions

__all__ = ["permissions"]
