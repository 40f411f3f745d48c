"""Contexts that agents write, the events of the feed, agents' histories, exports and imports (spec 1)."""

from workbench.services.sharing import audit, contexts, events, export, importing, retention

__all__ = ["audit", "contexts", "events", "export", "importing", "retention"]
