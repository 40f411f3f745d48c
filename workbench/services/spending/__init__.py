"""What requests to models use and cost: one ledger for the gateway, for conversations, and for what agents report."""

from workbench.services.spending import ledger

__all__ = ["ledger"]
