"""Contexts that agents write, the events of the feed, and exports (spec 1)."""

from workbench.services.sharing import (
    contexts,
    events,
    export,
)

__all__ = ["contexts", "events", "export"]
