"""What the person is told while she does something else: one digest of what happened, by her command and webhook."""

from workbench.services.notifications import delivery, digests

__all__ = ["delivery", "digests"]
