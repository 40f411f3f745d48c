"""How fast somebody may go: a bucket that fills steadily and may be emptied at once."""

from __future__ import annotations


class TokenBucket:
    """So many a second on average over a number of seconds; all of them may come in one burst.

    Args:
        per_second: how many are allowed, on average.
        seconds: over how long the average is taken.
        now: the time, in seconds of any clock.
    """

    def __init__(self, per_second: float, seconds: float, now: float) -> None:
        self._per_second = per_second
        self._most = per_second * seconds
        self._left = self._most
        self._seen = now

    def take(self, now: float) -> bool:
        """Count one more; whether it is within the limit."""
        gained = max(now - self._seen, 0.0) * self._per_second
        self._left = min(self._left + gained, self._most)
        self._seen = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
