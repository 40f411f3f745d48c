"""The feed: the events after a cursor, for everyone who follows them, also across processes.

One pump reads new events once and hands them to every subscriber whose kinds match. It wakes when
this process commits, and looks ten times a second whether another process has.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol, Self

from workbench.errors import Unavailable, WorkbenchError
from workbench.model import Event
from workbench.store.base import Reader, Row, Store
from workbench.store.queries import beside

SQL = beside(__file__)
POLL_SECONDS = 0.1
PAGE = 1_000

log = logging.getLogger(__name__)


class FeedStore(Store, Protocol):
    """What the feed needs of a store, beyond what services do."""

    def version(self) -> int:
        """Changes when any process commits."""
        ...


def event(row: Row) -> Event:
    """An event from its row."""
    return Event(**{**dict(row), "data": json.loads(row["data"])})


def matches(kind: str, patterns: Iterable[str]) -> bool:
    """Whether a kind is one of `patterns`: ``*``, ``<noun>.*`` or a kind itself."""
    return any(p in ("*", kind) or (p.endswith(".*") and kind.startswith(p[:-1])) for p in patterns)


def events_after(tx: Reader, cursor: int, limit: int = PAGE) -> list[Event]:
    """Events with a larger id than `cursor`, oldest first."""
    return [event(row) for row in tx.all(SQL.after, cursor=cursor, limit=limit)]


def last_event_id(tx: Reader) -> int:
    """The id of the newest event; 0 when there is none."""
    row = tx.one(SQL.last)
    return int(row["id"]) if row else 0


@dataclass(slots=True)
class FeedStats:
    """Events that subscribers were given from memory as they came, and those that were read again for one."""

    handed: int = 0
    fetched: int = 0


class Subscription:
    """An asynchronous iterator of events, oldest first and without gaps."""

    def __init__(self, store: Store, kinds: Sequence[str], limit: int, stats: FeedStats) -> None:
        self._store = store
        self._stats = stats
        self._kinds = kinds
        self._limit = limit
        self._live: asyncio.Queue[Event | None] = asyncio.Queue()
        self._past: deque[Event] = deque()
        self._read_to = self._joined_at = 0
        self._cut = False

    def join(self, after: int | None, now_at: int) -> None:
        """Start between two events: what lies between `after` and `now_at` is read from the store."""
        self._joined_at = now_at
        self._read_to = now_at if after is None else after

    def offer(self, event: Event) -> None:
        """Hand over a new event of its kinds; a subscriber that lags too far is cut off instead of waited for."""
        if self._cut:
            return
        self._cut = self._live.qsize() >= self._limit
        self._live.put_nowait(None if self._cut else event)
        self._stats.handed += not self._cut

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """The next event.

        Raises:
            Unavailable: ``READER_TOO_SLOW``; read on after the last event seen.
        """
        while not self._past and self._read_to < self._joined_at:
            await self._read_on()
        found = self._past.popleft() if self._past else await self._live.get()
        if found is None:
            self._live.put_nowait(None)  # it stays cut off
            raise Unavailable(
                "READER_TOO_SLOW",
                "This reader fell too far behind and was cut off. Read on after the last event you saw.",
            )
        return found

    async def within(self, seconds: float) -> Event | None:
        """The next event, or None when none comes in time."""
        try:
            async with asyncio.timeout(seconds):
                return await anext(self)
        except TimeoutError:
            return None

    async def _read_on(self) -> None:
        page = await self._store.read(lambda tx: events_after(tx, self._read_to))
        known = [e for e in page if e.id <= self._joined_at]
        self._stats.fetched += len(known)
        self._past.extend(e for e in known if matches(e.kind, self._kinds))
        self._read_to = known[-1].id if known and len(page) == len(known) == PAGE else self._joined_at


class Feed:
    """The process's one reader of new events: `run` it in a task, subscribe from the same loop."""

    def __init__(self, store: FeedStore, queue_limit: int) -> None:
        self._store = store
        self._limit = queue_limit
        self._subscriptions: dict[str, set[Subscription]] = {}
        self.stats = FeedStats()
        self._cursor = 0
        self._news = asyncio.Event()
        self._delivering = asyncio.Lock()
        self._loop = asyncio.get_running_loop()

    @property
    def readers(self) -> int:
        """How many follow it now."""
        return len(set().union(*self._subscriptions.values()))

    def wake(self) -> None:
        """Say that something was committed; callable from any thread."""
        with suppress(RuntimeError):  # the loop has closed: nobody follows any more
            self._loop.call_soon_threadsafe(self._news.set)

    async def run(self) -> None:
        """Deliver events until cancelled; what cannot be read now is tried again."""
        version = None
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):  # `wait_for` loses a cancellation that meets the news
                    await self._news.wait()
            self._news.clear()
            if not self._subscriptions:
                version = None  # whoever comes next may have read before the newest commit
                continue
            seen = self._store.version()
            if seen != version:
                try:
                    async with self._delivering:
                        await self._deliver()
                except WorkbenchError:
                    log.warning("the feed could not be read; it is tried again", exc_info=True)
                    continue
            version = seen

    @asynccontextmanager
    async def subscribe(self, *kinds: str, after: int | None = None) -> AsyncIterator[Subscription]:
        """Follow `kinds` (``*``, ``<noun>.*`` or a kind), from now on or after an event."""
        subscription = Subscription(self._store, kinds or ("*",), self._limit, self.stats)
        async with self._delivering:
            if self._subscriptions:
                await self._deliver()
            else:
                self._cursor = await self._store.read(last_event_id)
            subscription.join(after, self._cursor)
            for kind in kinds or ("*",):
                self._subscriptions.setdefault(kind, set()).add(subscription)
        try:
            yield subscription
        finally:
            self._leave(subscription, kinds or ("*",))

    def _leave(self, subscription: Subscription, kinds: Iterable[str]) -> None:
        for kind in kinds:
            found = self._subscriptions.get(kind, set())
            found.discard(subscription)
            if not found:
                self._subscriptions.pop(kind, None)

    def _readers_of(self, kind: str) -> set[Subscription]:
        """Those whose kinds match; thousands may follow something else."""
        patterns = ("*", kind.partition(".")[0] + ".*", kind)
        return set().union(*(self._subscriptions.get(pattern, ()) for pattern in patterns))

    async def _deliver(self) -> None:
        while True:
            page = await self._store.read(lambda tx: events_after(tx, self._cursor))
            for found in page:
                for subscription in self._readers_of(found.kind):
                    subscription.offer(found)
            if page:
                self._cursor = page[-1].id
            if len(page) < PAGE:
                return
