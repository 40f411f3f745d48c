"""Reports the server's performance to the operator (spec 1, performance monitor)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, RestRoute, op
from workbench.store.base import Reader
from workbench.store.queries import beside

SQL = beside(__file__)

WINDOW_SECONDS = 10.0


class CommitTimes(Wire):
    """Milliseconds from taking changes off the queue to their commit; null without a commit."""

    p50: float | None
    p95: float | None
    max: float | None


class Performance(Wire):
    """Performance of the answering process over the last ten seconds, and the database's connections and counts.

    `store` is where the database is. `cache_hits` is the share of events, since the start, that readers of the feed got
    from memory instead of from the store; null before the first event.
    """

    store: str
    queue_length: int
    writes_per_second: float
    commits_per_second: float
    writes_per_commit: float | None
    commit_ms: CommitTimes
    connections: int
    pending_agents: int
    feed_readers: int
    cache_hits: float | None
    events: int
    tasks: int
    database_bytes: int


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("performance", help="Show queue, commits, connections and events."),
    rest=RestRoute("GET", "/performance"),
)
async def get_performance(ctx: Ctx) -> Performance:
    """Get queue length, writes per second, commit latency, connections, and the numbers of events and tasks."""
    writer = ctx.store.stats()
    since = time.monotonic() - WINDOW_SECONDS
    recent = [(changes, seconds) for at, changes, seconds in writer.commits if at >= since]
    writes = sum(changes for changes, _ in recent)
    feed = ctx.feed.stats
    delivered = feed.handed + feed.fetched
    counts = await ctx.read(_counts)
    return Performance(
        store=ctx.settings.store,
        queue_length=writer.queue,
        writes_per_second=round(writes / WINDOW_SECONDS, 1),
        commits_per_second=round(len(recent) / WINDOW_SECONDS, 1),
        writes_per_commit=round(writes / len(recent), 1) if recent else None,
        commit_ms=_times([seconds for _, seconds in recent]),
        feed_readers=ctx.feed.readers,
        cache_hits=round(feed.handed / delivered, 3) if delivered else None,
        **counts,
    )


def _counts(tx: Reader) -> dict[str, int]:
    row = tx.one(SQL.counts)
    assert row is not None
    return dict(row)


def _times(seconds: Sequence[float]) -> CommitTimes:
    ordered = sorted(seconds)

    def at(share: float) -> float | None:
        return round(ordered[int(share * (len(ordered) - 1))] * 1_000, 2) if ordered else None

    return CommitTimes(p50=at(0.5), p95=at(0.95), max=at(1.0))
