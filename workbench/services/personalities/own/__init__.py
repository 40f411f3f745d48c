"""The profiles of this project's own agents: the operations, and how they are published."""

from workbench.services.personalities.own import (
    operations,
    publishing,
)

__all__ = ["operations", "publishing"]
