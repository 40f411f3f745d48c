"""Authentication, the permissions of tools, personas, the allowlist, and trust in the project's files."""

from workbench.services.access import allowlist, authentication, permissions, personas, secret_marks, trust

__all__ = ["allowlist", "authentication", "permissions", "personas", "secret_marks", "trust"]
