"""The feed: delivers the events after a cursor to every subscriber, also across processes.

Events of this process come directly from its commits. Those of other processes are read from the store, which is
polled ten times a second. Both reach every subscriber in order, once and without gaps.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar

from workbench.errors import Unavailable, WorkbenchError
from workbench.model import FeedEvent
from workbench.store.base import Reader, Row, Store
from workbench.store.queries import beside

SQL = beside(__file__)
T = TypeVar("T")

POLL_SECONDS = 0.1
PAGE = 1_000
BATCH = 256

log = logging.getLogger(__name__)


def event(row: Row) -> FeedEvent:
    """An event from its row."""
    return FeedEvent(**{**dict(row), "data": json.loads(row["data"])})


def matches(kind: str, patterns: Iterable[str]) -> bool:
    """Whether a kind is one of `patterns`: ``*``, ``<noun>.*`` or a kind itself."""
    return any(
        pattern in ("*", kind) or (pattern.endswith(".*") and kind.startswith(pattern[:-1])) for pattern in patterns
    )


def events_after(tx: Reader, cursor: int, limit: int = PAGE) -> list[FeedEvent]:
    """Events with a larger id than `cursor`, oldest first."""
    return [event(row) for row in tx.all(SQL.after, cursor=cursor, limit=limit)]


def _rows_after(cursor: int, tx: Reader) -> list[Row]:
    return tx.all(SQL.after, cursor=cursor, limit=PAGE)


def last_event_id(tx: Reader) -> int:
    """The id of the newest event; 0 when there is none."""
    row = tx.one(SQL.last)
    return int(row["id"]) if row else 0


@dataclass(slots=True)
class FeedStats:
    """The number of events handed to subscribers directly, and of those read from the store for one subscriber."""

    handed: int = 0
    fetched: int = 0


class FeedSubscription:
    """An asynchronous iterator of events, oldest first and without gaps."""

    def __init__(self, store: Store, kinds: Sequence[str], subject: str | None, limit: int, stats: FeedStats) -> None:
        self._store = store
        self._stats = stats
        self._kinds = kinds
        self._subject = subject
        self._limit = limit
        self._live: deque[FeedEvent] = deque()
        self._news = asyncio.Event()
        self._past: deque[FeedEvent] = deque()
        self._read_to = self._joined_at = 0
        self._cut = False

    def join(self, after: int | None, now_at: int) -> None:
        """Start after the event `now_at`; those from `after` to there are read from the store."""
        self._joined_at = now_at
        self._read_to = now_at if after is None else after

    def offer(self, event: FeedEvent) -> None:
        """Queue a new event for the subscriber; one that lags too far behind is cut off, not waited for."""
        if self._cut or self._subject not in (None, event.subject):
            return
        if len(self._live) >= self._limit:
            self._cut = True
        else:
            self._live.append(event)
            self._stats.handed += 1
        self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FeedEvent:
        """The next event.

        Raises:
            Unavailable: ``READER_TOO_SLOW``; continue after the last event received.
        """
        while not self._past and self._read_to < self._joined_at:
            await self._read_on()
        if self._past:
            return self._past.popleft()
        while not self._live:
            if self._cut:
                raise _slow_reader_error()
            self._news.clear()
            await self._news.wait()
        return self._live.popleft()

    async def batch(self) -> list[FeedEvent]:
        """The next event, and those after it that are already available, at most `BATCH`.

        Raises:
            Unavailable: ``READER_TOO_SLOW``; continue after the last event received.
        """
        first = await anext(self)
        queue = self._past if self._past or self._read_to < self._joined_at else self._live
        return [first, *(queue.popleft() for _ in range(min(len(queue), BATCH - 1)))]

    async def within(self, seconds: float) -> FeedEvent | None:
        """The next event, or None when none comes in time."""
        try:
            async with asyncio.timeout(seconds):
                return await anext(self)
        except TimeoutError:
            return None

    async def _read_on(self) -> None:
        page = await self._store.read(lambda tx: events_after(tx, self._read_to))
        past = [past_event for past_event in page if past_event.id <= self._joined_at]
        self._stats.fetched += len(past)
        relevant = (past_event for past_event in past if self._subject in (None, past_event.subject))
        self._past.extend(past_event for past_event in relevant if matches(past_event.kind, self._kinds))
        self._read_to = past[-1].id if past and len(page) == len(past) == PAGE else self._joined_at


def _slow_reader_error() -> Unavailable:
    return Unavailable(
        "READER_TOO_SLOW",
        "This reader fell too far behind and was cut off. Continue after the last event you received.",
    )


class FeedSignal:
    """Signals that a matching event has happened, without the event itself, so that it cannot overflow."""

    def __init__(self, subject: str | None, own: str = "", *, is_inner: bool = False) -> None:
        self.is_inner = is_inner
        self._subject = subject
        self._own = own
        self._noun = own.partition(":")[0] + ":"
        self._newest = 0
        self._news = asyncio.Event()

    def wake(self) -> None:
        """End a wait for the next event."""
        self._news.set()

    async def next(self, seconds: float) -> None:
        """Wait for an event since the last such wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()

    def offer(self, event_id: int, subject: str) -> None:
        """Note an event, if it is about the subject, and not about another of the kind of its own."""
        if self._subject not in (None, subject) or (self._own not in ("", subject) and subject.startswith(self._noun)):
            return
        self._newest = event_id
        self._news.set()

    async def after(self, event_id: int, seconds: float) -> bool:
        """Wait for an event with a larger id; False when none has come in time."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while self._newest <= event_id:
                        self._news.clear()
                        await self._news.wait()
        return self._newest > event_id


@dataclass(frozen=True, slots=True)
class _Followers:
    """The followers of one kind of events."""

    subscriptions: Sequence[FeedSubscription]
    changes: Sequence[FeedSignal]


class Feed:
    """The process's one reader of new events: `run` it in a task, follow it from the same loop."""

    def __init__(self, store: Store, queue_limit: int) -> None:
        self._store = store
        self._limit = queue_limit
        self._patterns: dict[FeedSubscription | FeedSignal, tuple[str, ...]] = {}
        self._routes: dict[str, _Followers] = {}
        self._foreign: list[Callable[[Sequence[Row]], None]] = []
        self._listeners: dict[str, list[Callable[[Row], None]]] = {}
        self.stats = FeedStats()
        self._cursor: int | None = None
        self._committed: deque[Sequence[Row]] = deque()
        self._news = asyncio.Event()
        self._delivering = asyncio.Lock()
        self._version: int | None = None
        self._read_at = 0.0
        self._loop = asyncio.get_running_loop()

    @property
    def readers(self) -> int:
        """The number of its current followers, without those of Workbench itself."""
        return len(self._outer)

    @property
    def patterns(self) -> frozenset[str]:
        """The patterns that these follow now: ``*``, ``<noun>.*`` and kinds."""
        return frozenset(pattern for patterns in self._outer for pattern in patterns)

    @property
    def _outer(self) -> list[tuple[str, ...]]:
        return [
            patterns for one, patterns in self._patterns.items() if not (isinstance(one, FeedSignal) and one.is_inner)
        ]

    def wake(self) -> None:
        """End the waits of Workbench itself for the next event."""
        for follower in self._patterns:
            if isinstance(follower, FeedSignal) and follower.is_inner:
                follower.wake()

    def committed(self, events: Sequence[Row]) -> None:
        """Accept the events of a commit of this process, in order; callable from any thread."""
        self._committed.append(events)
        with suppress(RuntimeError):  # the loop has closed: there are no followers any more
            self._loop.call_soon_threadsafe(self._note_commits)

    def on_foreign(self, callback: Callable[[Sequence[Row]], None]) -> None:
        """Call `callback` on the loop with events read from the store, among them all of other processes."""
        self._foreign.append(callback)

    def on_event(self, callback: Callable[[Row], None], *kinds: str) -> None:
        """Call `callback` on the loop with each event of these kinds; it must be quick."""
        for kind in kinds:
            self._listeners.setdefault(kind, []).append(callback)

    async def begin(self) -> None:
        """Start at the newest event; `run` does this itself if necessary."""
        await self._read_new()

    async def run(self) -> None:
        """Deliver events until cancelled; a read that fails is tried again, and logged once."""
        told = ""
        while True:
            poll = self._loop.call_later(POLL_SECONDS, self._news.set)  # costs less than a timeout
            try:
                await self._news.wait()
            finally:
                poll.cancel()
            self._news.clear()
            try:
                async with self._delivering:
                    await self._deliver()
                told = ""
            except WorkbenchError as error:
                if error.code != told:
                    log.warning("the feed cannot be read until this is mended: %s: %s", error.code, error.message)
                told = error.code
                await asyncio.sleep(POLL_SECONDS)

    @asynccontextmanager
    async def subscribe(
        self, *kinds: str, after: int | None = None, subject: str | None = None
    ) -> AsyncIterator[FeedSubscription]:
        """Follow `kinds` (``*``, ``<noun>.*`` or a kind), from now on or after an event, about one subject or any."""
        subscription = FeedSubscription(self._store, kinds or ("*",), subject, self._limit, self.stats)
        async with self._delivering:
            cursor = await self._read_new()
            subscription.join(after, cursor)
            self._follow(subscription, kinds)
        try:
            yield subscription
        finally:
            self._leave(subscription)

    @contextmanager
    def changed(
        self, *kinds: str, subject: str | None = None, own: str = "", is_inner: bool = False
    ) -> Iterator[FeedSignal]:
        """Get a `FeedSignal` that events of `kinds`, about one subject or any, wake.

        Events about another subject of the same noun as `own` do not: with ``agent:1``, none about other agents.

        Read the state together with `last_event_id`, then wait for a change `after` that event.
        """
        change = FeedSignal(subject, own, is_inner=is_inner)
        self._follow(change, kinds)
        try:
            yield change
        finally:
            self._leave(change)

    async def until(
        self,
        question: Callable[[Reader], T],
        enough: Callable[[T], bool],
        *kinds: str,
        subject: str | None = None,
        own: str = "",
        seconds: float,
    ) -> T:
        """Read from the store, again after each event of `kinds`, until the answer is enough; the last answer.

        Args:
            own: see `changed`.
            seconds: how long to repeat the read, which is done at least once.
        """
        deadline = self._loop.time() + seconds
        with self.changed(*kinds, subject=subject, own=own) as change:
            while True:
                answer, last = await self._store.read(lambda tx: (question(tx), last_event_id(tx)))
                if enough(answer) or not await change.after(last, deadline - self._loop.time()):
                    return answer

    def _follow(self, follower: FeedSubscription | FeedSignal, kinds: tuple[str, ...]) -> None:
        self._patterns[follower] = kinds or ("*",)
        self._routes.clear()

    def _leave(self, follower: FeedSubscription | FeedSignal) -> None:
        del self._patterns[follower]
        self._routes.clear()

    def _followers(self, kind: str) -> _Followers:
        """The followers whose patterns match a kind, cached until one joins or leaves."""
        followers = self._routes.get(kind)
        if followers is None:
            matching = [follower for follower, patterns in self._patterns.items() if matches(kind, patterns)]
            followers = self._routes[kind] = _Followers(
                [follower for follower in matching if isinstance(follower, FeedSubscription)],
                [follower for follower in matching if isinstance(follower, FeedSignal)],
            )
        return followers

    def _note_commits(self) -> None:
        """Hand over committed events at once, if possible; otherwise `run` does it."""
        if self._cursor is not None and not self._delivering.locked():
            while self._committed and self._hand_over_own():
                pass
        if self._committed:
            self._news.set()

    async def _deliver(self) -> None:
        """Hand over the events that this process has committed, and, at each poll, those of others."""
        if self._cursor is None:
            await self.begin()
        while self._committed:
            if not self._hand_over_own():
                if not self.readers:  # what other processes did in between can wait for the poll
                    break
                await self._read_new()
        if self._is_due():
            await self._read_new()

    def _hand_over_own(self) -> bool:
        """Hand over the events of one commit; False if events of other processes come before them."""
        assert self._cursor is not None
        cursor, batch = self._cursor, self._committed[0]
        if batch[0]["id"] > cursor + 1:
            return False
        self._committed.popleft()
        self._hand_over(batch if batch[0]["id"] == cursor + 1 else [row for row in batch if row["id"] > cursor])
        return True

    def _is_due(self) -> bool:
        return self._loop.time() - self._read_at >= POLL_SECONDS and self._store.version() != self._version

    async def _read_new(self) -> int:
        """Hand over the events in the store after the cursor; the new cursor. The first time, start at the newest."""
        self._read_at, self._version = self._loop.time(), self._store.version()
        if self._cursor is None:
            newest = await self._store.read(last_event_id)
            self._cursor = min(newest, self._committed[0][0]["id"] - 1) if self._committed else newest
            return self._cursor
        more = True
        while more:
            page = await self._store.read(partial(_rows_after, self._cursor))
            for callback in self._foreign if page else ():
                callback(page)
            self._hand_over(page)
            more = len(page) == PAGE
        return self._cursor

    def _hand_over(self, rows: Sequence[Row]) -> None:
        for row in rows:
            for listener in self._listeners.get(row["kind"], ()):
                listener(row)
            followers = self._followers(row["kind"])
            for change in followers.changes:
                change.offer(row["id"], row["subject"])
            if followers.subscriptions:
                feed_event = event(row)
                for subscription in followers.subscriptions:
                    subscription.offer(feed_event)
        if rows:
            self._cursor = rows[-1]["id"]
