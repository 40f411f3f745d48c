"""Noticing that somebody set the host's clock."""

from __future__ import annotations

from workbench.model import SECOND

STEP = 2 * SECOND
"""What a clock never gains or loses by itself between two looks at it."""


def was_set(ahead_before: int, ahead: int) -> bool:
    """Whether the host's clock was set between two looks.

    Args:
        ahead_before, ahead: by how much it was ahead of a clock that nobody can set, in microseconds.
    """
    return abs(ahead - ahead_before) > STEP
