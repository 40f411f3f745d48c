"""The feed: every subscriber hears every event once, in order, from any writer."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
import psutil
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from tests import given
from tests.store.exhaustion import no_descriptors, reader_busy
from workbench.errors import Unavailable
from workbench.store.base import Store, Tx
from workbench.store.feed import BATCH, PAGE, Feed, FeedStats, FeedSubscription, events_after, last_event_id, matches
from workbench.store.sqlite import SqliteStore

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.timeout(60, method="thread"),
]  # a writer that hangs would hang the teardown too

KINDS = ["task.created", "task.completed", "tasks.counted", "agent.assigned"]
PATTERNS = ["*", "task.*", "task.completed", "agent.*", "agent.assigned", "nothing.*"]
END = "end.reached"

WRITES = """
import asyncio, sys
from pathlib import Path
from workbench.store.opening import open_store
store = open_store(sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1]))
print("ready", flush=True)
for line in sys.stdin:
    kind, times = line.split()
    for number in range(int(times)):
        asyncio.run(store.write(lambda tx: tx.emit(kind, f"there:{number}"), actor="other"))
    print("done", flush=True)
store.close()
"""
"""What another process does."""


@asynccontextmanager
async def following(store: SqliteStore, limit: int = 10_000) -> AsyncIterator[Feed]:
    """A feed that runs."""
    feed = Feed(store, limit)
    store.on_commit(feed.committed)
    await feed.begin()
    pump = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        pump.cancel()
        with suppress(asyncio.CancelledError):
            await pump


@pytest.fixture
async def feed(store: SqliteStore) -> AsyncIterator[Feed]:
    """A feed of `store` that runs."""
    async with following(store) as made:
        yield made


@pytest.fixture
def other(store: Store, backend: Any, tmp_path: Path, child: Any) -> Any:
    """Another process, which writes to `store`."""
    program = tmp_path / "other.py"
    program.write_text(WRITES)
    process = child(str(program), backend.target)
    assert process.stdout.readline() == "ready\n"
    return process


async def done(other: Any) -> None:
    """Return once the other process has written what it was told to."""
    assert await asyncio.to_thread(other.stdout.readline) == "done\n"


def say(*kinds: str) -> Callable[[Tx], None]:
    """A change that consists of events."""

    def change(tx: Tx) -> None:
        for kind in kinds:
            tx.emit(kind, "thing:1")

    return change


async def said(store: Store, *kinds: str) -> int:
    """Have events, and nobody else's, be the last ones; the id of the last."""
    await store.write(say(*kinds))
    return await store.read(last_event_id)


async def take(events: FeedSubscription, number: int) -> list[str]:
    """The kinds of the next events."""
    return [(await anext(events)).kind for _ in range(number)]


async def ids_until_end(events: FeedSubscription) -> list[int]:
    """The events that a subscriber hears up to the last one of a test."""
    heard: list[int] = []
    async for event in events:
        if event.kind == END:
            return heard
        heard.append(event.id)
    raise AssertionError("subscriptions do not end")


async def nothing_was_left(store: Store, *subscriptions: FeedSubscription) -> None:
    """After the end, the next event that everyone hears is the next one there is."""
    last = await said(store, END)
    assert [(await anext(events)).id for events in subscriptions] == [last] * len(subscriptions)


async def ids_in_store(store: Store, after: int, patterns: tuple[str, ...]) -> list[int]:
    """The events that a subscriber has to hear."""
    events = await store.read(lambda tx: events_after(tx, after, limit=1_000_000))
    return [event.id for event in events if event.kind != END and matches(event.kind, patterns)]


def test_a_pattern_is_everything_a_noun_or_a_kind() -> None:
    fitting = (["*"], ["task.*"], ["task.created"], ["agent.*", "task.created"])
    others = ([], ["task"], ["task.create"], ["tas*"], ["task.c*"], ["agent.*", "plan.created"], ["tasks.*"])
    for patterns in (*fitting, *others):
        assert matches("task.created", patterns) is (patterns in fitting), patterns
    assert not matches("tasks.counted", ["task.*"])
    assert not matches("task.*", ["task.created"])


# What a subscriber hears.


async def test_a_subscriber_hears_what_it_asked_for_from_now_on(store: Store, feed: Feed) -> None:
    await store.write(say("task.created", "agent.assigned"))
    async with feed.subscribe("task.*") as tasks, feed.subscribe() as everything:
        await store.write(say("task.completed", "agent.assigned", "tasks.counted"))
        await store.write(say("task.created"))
        assert await take(tasks, 2) == ["task.completed", "task.created"]
        assert await take(everything, 4) == ["task.completed", "agent.assigned", "tasks.counted", "task.created"]
        assert await tasks.within(0.01) is None
        last = await store.read(last_event_id)
        await store.write(lambda tx: tx.emit("task.claimed", "task:7", session="s", title="é", n=[1]), actor="ada")
        assert [await anext(tasks)] == await store.read(lambda tx: events_after(tx, last))


@pytest.mark.parametrize(
    ("back", "patterns"),
    [(2 * PAGE + 50, ("*",)), (2 * PAGE, ("*",)), (PAGE, ("task.*",)), (7, ("*",)), (0, ("agent.*",))],
)
async def test_a_subscriber_may_begin_in_the_past(
    store: Store, feed: Feed, back: int, patterns: tuple[str, ...]
) -> None:
    last = await said(store, *itertools.islice(itertools.cycle(KINDS), 2 * PAGE + 50))
    async with feed.subscribe(*patterns, END, after=last - back) as events:
        await store.write(say(*["task.created"] * (2 * PAGE + 5), END))
        assert await ids_until_end(events) == await ids_in_store(store, last - back, patterns)
        await nothing_was_left(store, events)


async def test_batches_have_past_events_first_and_none_twice(store: SqliteStore) -> None:
    past, now = 2 * BATCH + 50, BATCH + 2
    await store.write(lambda tx: [tx.emit("task.noted", "task:1") for _ in range(past + now)] and None)
    events = await store.read(lambda tx: events_after(tx, 0))
    subscription = FeedSubscription(store, ["*"], None, limit=now, stats=FeedStats())
    subscription.join(0, events[past - 1].id)
    for event in events[past:]:
        subscription.offer(event)
    batches = [await subscription.batch() for _ in range(5)]
    assert [len(batch) for batch in batches] == [BATCH, BATCH, 50, BATCH, 2]
    assert [one for batch in batches for one in batch] == events


async def test_a_change_that_fails_is_not_heard_of(store: Store, feed: Feed) -> None:
    def fail(tx: Tx) -> None:
        tx.emit("task.created", "task:1")
        raise KeyError("on purpose")

    async with feed.subscribe() as events:
        writes = (store.write(say("task.created")), store.write(fail), store.write(say("task.completed")))
        await asyncio.gather(*writes, return_exceptions=True)
        await store.write(say(END))
        assert await take(events, 3) == ["task.created", "task.completed", END]


async def test_a_subscriber_after_an_idle_time_gets_no_earlier_events(store: Store, feed: Feed) -> None:
    for number in range(3):
        await store.write(say("task.created"))
        async with feed.subscribe() as events:
            await store.write(say(f"round.{number}"))
            assert await take(events, 1) == [f"round.{number}"]
        await store.write(say("task.created"))


async def test_an_event_committed_during_a_subscription_is_heard(
    store: Store, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = store.read

    async def overtaken(question: Any) -> Any:
        monkeypatch.undo()
        answer = await read(question)
        await store.write(say("task.created"))
        for _ in range(50):  # the feed wakes, and finds nobody
            await asyncio.sleep(0)
        return answer

    monkeypatch.setattr(store, "read", overtaken)
    async with feed.subscribe() as events:
        assert await take(events, 1) == ["task.created"]


Step = (
    st.tuples(st.just("write"), st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
    | st.tuples(st.just("subscribe"), st.sets(st.sampled_from(PATTERNS), min_size=1), st.none() | st.integers(0, 8))
    | st.tuples(st.just("read"), st.integers(0, 5))
    | st.tuples(st.just("leave"), st.integers(0, 5))
    | st.tuples(st.just("let the feed run"))
)


@hypothesis.given(steps=st.lists(Step, max_size=25))
@settings(deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_each_subscriber_hears_each_event_once_and_in_order(store: SqliteStore, steps: list[Any]) -> None:
    async with asyncio.timeout(10), following(store) as feed, AsyncExitStack() as stack:
        beginning = await store.read(last_event_id)
        joined: list[tuple[FeedSubscription, AsyncExitStack, list[int], list[int]]] = []
        for what, *how in steps:
            if what == "write":
                await store.write(say(*how[0]))
            elif what == "subscribe":
                last = await store.read(last_event_id)
                after = None if how[1] is None else max(beginning, last - how[1])
                leaving = await stack.enter_async_context(AsyncExitStack())
                patterns = tuple(sorted(how[0]))
                events = await leaving.enter_async_context(feed.subscribe(*patterns, END, after=after))
                begins = last if after is None else after
                joined.append((events, leaving, [begins, *map(PATTERNS.index, patterns)], []))
            elif what == "let the feed run":
                await asyncio.sleep(0.001)
            elif joined:
                events, leaving, (begins, *numbers), heard = joined[how[0] % len(joined)]
                if what == "leave":
                    await leaving.aclose()
                    joined.pop(how[0] % len(joined))
                elif len(heard) < len(await ids_in_store(store, begins, tuple(PATTERNS[n] for n in numbers))):
                    heard.append((await anext(events)).id)

        await store.write(say(END))
        for events, _, (begins, *numbers), heard in joined:
            expected = await ids_in_store(store, begins, tuple(PATTERNS[n] for n in numbers))
            assert heard + await ids_until_end(events) == expected
        await nothing_was_left(store, *(events for events, *_ in joined))


async def test_no_event_is_missed_or_repeated_while_many_write_here_and_elsewhere(
    store: SqliteStore, feed: Feed, other: Any
) -> None:
    random = Random(7)

    async def write(kind: str) -> None:
        for _ in range(150):
            await store.write(say(*[kind] * random.randint(1, 3)))

    async def follow(patterns: tuple[str, ...]) -> None:
        last = await said(store, "task.created")
        after = random.choice([0, last // 2, last])
        async with feed.subscribe(*patterns, END, after=after) as events:
            ready.release()
            heard = await ids_until_end(events)
        assert heard == await ids_in_store(store, after, patterns)

    ready = asyncio.Semaphore(0)
    other.stdin.write("task.completed 150\n")
    writers = [asyncio.create_task(write(kind)) for kind in KINDS]
    followers = []
    for patterns in [("*",), ("task.*",), ("agent.assigned", "tasks.*"), ("*",), ("nothing.*",), ("task.completed",)]:
        followers.append(asyncio.create_task(follow(patterns)))
        await ready.acquire()
    await asyncio.gather(*writers)
    await done(other)
    await store.write(say(END))
    await asyncio.gather(*followers)


# Other processes.


async def test_events_of_another_process_are_heard_and_wake_waiters(store: SqliteStore, feed: Feed, other: Any) -> None:
    async with feed.subscribe("task.*") as tasks, feed.subscribe() as everything:
        for times in (1, 3):
            other.stdin.write(f"task.created {times}\n")
            heard = [await anext(tasks) for _ in range(times)]
            assert [(e.kind, e.actor, e.subject) for e in heard] == [
                ("task.created", "other", f"there:{number}") for number in range(times)
            ]
            assert [await anext(everything) for _ in range(times)] == heard
            await done(other)
        other.stdin.write("agent.assigned 1\n")
        assert await take(everything, 1) == ["agent.assigned"]
        await done(other)
    with feed.changed("task.completed") as change:
        other.stdin.write("task.completed 1\n")
        assert await change.after(0, 10)


async def test_without_subscribers_foreign_events_are_not_read_at_each_commit(
    store: Store, backend: Any, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await feed.begin()
    reads: list[Any] = []
    with closing(backend.open()) as other, monkeypatch.context() as patched:
        patched.setattr("workbench.store.feed.POLL_SECONDS", 3600)
        patched.setattr(store, "read", reads.append)
        for _ in range(20):
            await other.write(say("task.created"))
            await store.write(say("task.claimed"))
    assert reads == []


async def test_a_new_subscriber_does_not_hear_earlier_events_of_another_process(
    store: SqliteStore, feed: Feed, other: Any
) -> None:
    async with feed.subscribe("nothing.*"):
        for number in range(5):
            other.stdin.write("task.created 1\n")
            await done(other)
            async with feed.subscribe() as events:
                await store.write(say(f"round.{number}"))
                assert await take(events, 1) == [f"round.{number}"]


# Being woken.


async def test_a_change_wakes_those_who_wait_for_its_kind_and_subject(store: SqliteStore) -> None:
    async with following(store, limit=1) as feed:  # a change cannot overflow
        with feed.changed("task.*", subject="thing:1") as mine, feed.changed("task.*", subject="thing:2") as other:
            last = await said(store, *["task.created"] * 1_000)
            assert await mine.after(last - 1, 5)
            assert not await other.after(0, 0.01)
            assert not await mine.after(last, 0.01)
            waiting = asyncio.create_task(mine.after(last, 5))
            await said(store, "agent.assigned", "task.completed")
            assert await waiting


# Trouble.


@pytest.mark.parametrize("lag", [11, 25])
async def test_a_reader_that_lags_too_far_is_cut_off_and_others_continue(store: SqliteStore, lag: int) -> None:
    async with (
        following(store, limit=10) as feed,
        feed.subscribe() as slow,
        feed.subscribe() as quick,
        feed.subscribe("agent.*") as elsewhere,
    ):
        for _ in range(lag):
            await store.write(say("task.created"))
            assert await take(quick, 1) == ["task.created"]
        seen = [await anext(slow) for _ in range(10)]
        await store.write(say("agent.assigned"))
        assert await take(quick, 1) == await take(elsewhere, 1) == ["agent.assigned"]
        for _ in range(3):
            with pytest.raises(Unavailable, match="READER_TOO_SLOW"):
                await anext(slow)

        async with feed.subscribe(after=seen[-1].id) as resumed:
            missed = [await anext(resumed) for _ in range(lag + 1 - 10)]
        assert [event.id for event in seen + missed] == await ids_in_store(store, 0, ("*",))


async def test_a_reader_that_keeps_up_is_never_cut_off(store: SqliteStore) -> None:
    async with following(store, limit=10) as feed, feed.subscribe() as events:
        for _ in range(20):
            await store.write(say(*["task.created"] * 10))
            assert await take(events, 10) == ["task.created"] * 10


async def test_cancelling_a_wait_loses_no_event(store: Store, feed: Feed) -> None:
    async with feed.subscribe() as events:
        heard: list[int] = []
        writing = asyncio.create_task(store.write(say("task.created")))
        while len(heard) < 100:
            if found := await events.within(0.0005):
                heard.append(found.id)
                writing = asyncio.create_task(store.write(say("task.created")))
        await writing
        assert heard == (await ids_in_store(store, 0, ("*",)))[:100]


async def test_a_feed_stops_on_request_even_while_events_come(store: SqliteStore) -> None:
    for _ in range(20):
        async with following(store) as feed, feed.subscribe("task.*") as events:
            await asyncio.sleep(0)
            await store.write(say("task.created"))
            await take(events, 1)
            writing = asyncio.create_task(store.write(say("task.created")))  # the news and the end arrive together
            await asyncio.sleep(0)
        await writing


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_feed_continues_where_it_was_after_failed_reads(backend: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The only reading connection is busy; a second one cannot be opened as the process has no descriptors."""
    tried = False
    while not tried:
        with closing(backend.open()) as store:
            async with following(store) as feed, feed.subscribe() as events, reader_busy(store):
                if tried := connections(store) == 3:  # else there happened to be a second reading one already
                    with no_descriptors():
                        await store.write(say("task.created"))
                        await given.until(lambda: "STORE_UNREADABLE" in caplog.text)
                    await store.write(say("task.completed"))
                    assert await take(events, 2) == ["task.created", "task.completed"]


def connections(store: SqliteStore) -> int:
    """The number of connections: two of the writer, and one of each reader."""
    return sum(file.path == str(store.path) for file in psutil.Process().open_files())
