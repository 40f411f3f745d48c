"""The operations `read` and `write` of spec 1, and the server's performance."""

from workbench.services.insight import performance, read_write

__all__ = ["performance", "read_write"]
