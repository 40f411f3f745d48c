"""Questions about everything: read and write of spec 1, and how the server is doing."""

from workbench.services.insight import (
    performance,
    read_write,
)

__all__ = ["performance", "read_write"]
