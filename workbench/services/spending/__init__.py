"""What requests to models use and cost: one ledger for the gateway, for conversations, and for what agents report.

- `ledger`: each request
- `spent`: sums of requests and attempts
- `budgets`: what may be spent
- `estimates`: what a plan may cost, by what similar attempts did
"""

from workbench.services.spending import budgets, estimates, ledger, spent

__all__ = ["budgets", "estimates", "ledger", "spent"]
