"""The operations `read` and `write` of spec 1, the server's performance, and what the project did lately."""

from workbench.services.insight import activity, hours, performance, read_write

__all__ = ["activity", "hours", "performance", "read_write"]
