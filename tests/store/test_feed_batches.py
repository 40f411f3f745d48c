"""What a subscriber of the feed takes at once."""

from __future__ import annotations

import pytest

from workbench.store.feed import BATCH, FeedStats, Subscription, events_after
from workbench.store.sqlite import SqliteStore

pytestmark = pytest.mark.anyio


async def test_a_batch_is_what_is_at_hand_first_of_the_past_and_nothing_twice(store: SqliteStore) -> None:
    past, now = 2 * BATCH + 50, BATCH + 2
    await store.write(lambda tx: [tx.emit("task.noted", "task:1") for _ in range(past + now)] and None)
    events = await store.read(lambda tx: events_after(tx, 0))
    subscription = Subscription(store, ["*"], None, limit=now, stats=FeedStats())
    subscription.join(0, events[past - 1].id)
    for event in events[past:]:
        subscription.offer(event)
    batches = [await subscription.batch() for _ in range(5)]
    assert [len(batch) for batch in batches] == [BATCH, BATCH, 50, BATCH, 2]
    assert [one for batch in batches for one in batch] == events
