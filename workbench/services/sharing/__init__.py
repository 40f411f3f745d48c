"""Contexts that agents write, the events of the feed, agents' histories, and exports (spec 1)."""

from workbench.services.sharing import (
    audit,
    contexts,
    events,
    export,
)

__all__ = ["audit", "contexts", "events", "export"]
