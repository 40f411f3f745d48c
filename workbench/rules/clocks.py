"""Detects that the host's clock was set."""

from __future__ import annotations

from workbench.model import SECOND

STEP = 2 * SECOND
"""More than a clock drifts between two readings."""


def was_set(ahead_before: int, ahead: int) -> bool:
    """Whether the host's clock was set between two readings.

    Args:
        ahead_before, ahead: how far it was ahead of a monotonic clock, in microseconds.
    """
    return abs(ahead - ahead_before) > STEP
