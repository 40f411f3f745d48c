"""Who a caller is and what may be used at all: tokens, tool permissions, personas, the allowlist."""

from workbench.services.access import (
    allowlist,
    authentication,
    permissions,
    personas,
)

__all__ = ["allowlist", "authentication", "permissions", "personas"]
