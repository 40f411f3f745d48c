"""What requests to models use and cost: one ledger for the gateway, for conversations, and for what agents report.

- `ledger`: what was spent
- `budgets`: what may be spent
"""

from workbench.services.spending import budgets, ledger

__all__ = ["budgets", "ledger"]
