"""What requests to models use and cost: one ledger for the gateway, for conversations, and for what agents report.

- `ledger`: each request
- `spent`: sums of requests and attempts
- `budgets`: what may be spent
"""

from workbench.services.spending import budgets, ledger, spent

__all__ = ["budgets", "ledger", "spent"]
