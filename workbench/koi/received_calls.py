"""The calls that other nodes have sent lately: each runs once, and no node may send too many."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from cachetools import LRUCache

from workbench.errors import Conflict, TooMany
from workbench.model import SECOND
from workbench.rules.token_bucket import TokenBucket

FRESH_SECONDS = 60
"""How old a call may be, or how far ahead the sender's clock."""
REMEMBERED = 2 * FRESH_SECONDS * SECOND
"""How long the id of a call is kept: as long as the call could be replayed."""
BUCKETS = 10_000
MINUTE = 60.0


class ReceivedCalls:
    """The calls of other nodes, in memory. Times are microseconds UTC."""

    def __init__(self) -> None:
        self._received: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._rates: LRUCache[tuple[str, str, int], TokenBucket] = LRUCache(BUCKETS)
        self._open: Counter[str] = Counter()

    def admit(self, node: str, call_id: str, now: int) -> None:
        """Note a call.

        Raises:
            Conflict: ``CALL_REPLAYED``: it was received before.
        """
        while self._received and next(iter(self._received.values())) < now - REMEMBERED:
            self._received.popitem(last=False)
        if (node, call_id) in self._received:
            raise replayed()
        self._received[node, call_id] = now

    def spend(self, node: str, rule: str, per_minute: int, now: int) -> None:
        """Count a call against the limit of a rule.

        Raises:
            TooMany: ``RATE_LIMITED``.
        """
        seconds, key = now / SECOND, (node, rule, per_minute)
        if key not in self._rates:
            self._rates[key] = TokenBucket(per_minute / MINUTE, MINUTE, seconds)
        if not self._rates[key].take(seconds):
            raise TooMany(
                "RATE_LIMITED",
                f"This node may send {per_minute} such calls a minute. Send it again later.",
                retry_after_seconds=max(1, round(MINUTE / per_minute)),
            )

    @contextmanager
    def open(self, node: str, most: int) -> Iterator[None]:
        """Count a call as open within the block.

        Raises:
            TooMany: ``TOO_MANY_CALLS``.
        """
        if self._open[node] >= most:
            raise TooMany(
                "TOO_MANY_CALLS",
                f"{most} calls of this node wait or run. Send it again when one has ended.",
                retry_after_seconds=1,
            )
        self._open[node] += 1
        try:
            yield
        finally:
            self._open[node] -= 1
            if not self._open[node]:
                del self._open[node]


def replayed() -> Conflict:
    """The error for a call that was received before."""
    return Conflict("CALL_REPLAYED", "A call with this id was received before. Each is run once.")
