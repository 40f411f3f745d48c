"""Authentication, the permissions of tools, personas, and the allowlist."""

from workbench.services.access import (
    allowlist,
    authentication,
    permissions,
    personas,
)

__all__ = ["allowlist", "authentication", "permissions", "personas"]
