"""Rate limiting by a token bucket.

Alone: several layers limit rates with it.
"""

from __future__ import annotations


class TokenBucket:
    """Permits `per_second` actions a second on average over `seconds`; all of them may come in one burst.

    Args:
        per_second: how many actions are permitted a second, on average.
        seconds: the period of the average.
        now: the time, in seconds of any clock.
    """

    def __init__(self, per_second: float, seconds: float, now: float) -> None:
        self._per_second = per_second
        self._capacity = per_second * seconds
        self._left = self._capacity
        self._updated = now

    def take(self, now: float) -> bool:
        """Count one action; return whether it is within the limit."""
        gained = max(now - self._updated, 0.0) * self._per_second
        self._left = min(self._left + gained, self._capacity)
        self._updated = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
