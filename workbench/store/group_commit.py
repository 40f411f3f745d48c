"""What the stores on all databases have in common: one writer thread with group commit.

Changes that are queued together share one transaction. When one of them raises, the transaction is rolled back and
replayed with a savepoint around each, so that it fails alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic_core import to_json

from workbench.errors import Unavailable, WorkbenchError
from workbench.model import SECOND
from workbench.store.base import Reader, Row, StoreStats, Tx, Values

T = TypeVar("T")

BATCH = 512
"""The most changes in one transaction."""
STATS_COMMITS = 4_096
FULL_AGAIN = 60 * SECOND
"""A disk that is full again so soon counts as full all the time."""
FULL = ("STORE_FULL", "The disk is full. Free some space; nothing was changed.")

log = logging.getLogger(__name__)


class Recorder:
    """The part of a `Tx` that records events; those of all changes of a commit are inserted together.

    It comes before the view of the database, whose other arguments are passed on.
    """

    now: int

    def __init__(self, db: Any, now: int, actor: str) -> None:
        super().__init__(db, now)  # type: ignore[call-arg]
        self.actor = actor
        self.events: list[dict[str, Any]] = []

    @contextmanager
    def acting(self, actor: str) -> Iterator[None]:
        """See `Tx.acting`."""
        previous, self.actor = self.actor, actor
        try:
            yield
        finally:
            self.actor = previous

    def emit(self, kind: str, subject: str, /, **data: Any) -> None:
        """See `Tx.emit`."""
        self.events.append(
            {
                "at": self.now,
                "kind": kind,
                "actor": self.actor,
                "subject": subject,
                "session": data.pop("session", None),
                "data": to_json(data).decode(),
            }
        )


class RecordingTx(Tx, Protocol):
    """A transaction, as one change sees it, with the events that it has recorded."""

    events: list[dict[str, Any]]


@dataclass(slots=True)
class Job:
    """A queued change, and how it ended."""

    change: Callable[[Tx], Any]
    actor: str
    future: asyncio.Future[Any]
    durable: bool
    result: Any = None
    error: BaseException | None = None


Apply = Callable[[list[Job]], Sequence[Row]]


class GroupCommit(ABC):
    """The queue, the writer thread and the reading threads of a store.

    Args:
        readers: how many threads read.
    """

    def __init__(self, clock: Callable[[], int], readers: int) -> None:
        self._clock = clock
        self._pool = ThreadPoolExecutor(readers, thread_name_prefix="workbench-read")
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._on_visible: list[Callable[[Sequence[Row]], None]] = []
        self._on_commit: list[Callable[[Sequence[Row]], None]] = []
        self._full: tuple[int, int | None] | None = None
        self._commits: deque[tuple[float, int, float]] = deque(maxlen=STATS_COMMITS)
        self._closing = threading.Lock()
        self._closed = False
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run_writer, name="workbench-writer", daemon=True)

    def now(self) -> int:
        """The store's clock, microseconds UTC."""
        return self._clock()

    def stats(self) -> StoreStats:
        """See `Store.stats`."""
        return StoreStats(self._jobs.qsize(), tuple(self._commits), self._full)

    async def write(self, change: Callable[[Tx], T], *, actor: str = "system", durable: bool = True) -> T:
        """See `Store.write`."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._closing:  # `close`, in any thread, runs before or after this: what is queued is answered
            self._require_open()
            self._jobs.put(Job(change, actor, future, durable))
        return await future

    async def read(self, question: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        with self._closing:
            self._require_open()
            answer = asyncio.get_running_loop().run_in_executor(self._pool, self._answer_read, question)
        return await answer

    def on_visible(self, callback: Callable[[Sequence[Row]], None]) -> None:
        """See `Store.on_visible`."""
        self._on_visible.append(callback)

    def on_commit(self, callback: Callable[[Sequence[Row]], None]) -> None:
        """See `Store.on_commit`."""
        self._on_commit.append(callback)

    def close(self) -> None:
        """See `Store.close`."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        self._thread.join()
        self._release()

    def _require_open(self) -> None:
        if self._closed or self._pid != os.getpid():
            raise Unavailable("STORE_CLOSED", "The store is closed. Start Workbench again.")

    # What each database does in its own way.

    @abstractmethod
    def _answer_read(self, question: Callable[[Reader], T]) -> T:
        """Run a question on a reading connection. It runs in a reading thread."""

    @abstractmethod
    def _release(self) -> None:
        """Close the connections and files."""

    @abstractmethod
    def _commit_all(self, batch: list[Job]) -> Sequence[Row]:
        """Commit a batch, by `_make`; the events that are durable now. It may answer jobs and take them out of it."""

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _end(self) -> None:
        """Commit."""

    @abstractmethod
    def _undo(self) -> None:
        """Roll back, if that is still necessary."""

    @abstractmethod
    def _execute(self, statement: str) -> None: ...

    @abstractmethod
    def _tx(self, actor: str) -> RecordingTx: ...

    @abstractmethod
    def _add(self, events: list[dict[str, Any]]) -> Sequence[Row]:
        """Insert events and set their ids."""

    @abstractmethod
    def _storage_error(self, error: BaseException) -> WorkbenchError | None:
        """The coded error for a failure of the storage itself; None if the statement was at fault."""

    # The writer's thread.

    def _run_writer(self) -> None:
        while batch := self._take():
            self._commit(batch)
            self._answer(batch)
            batch.clear()  # so that the requesters free their results one by one, not this thread all at once

    def _take(self) -> list[Job]:
        """The queued changes; an empty list when the store closes."""
        job = self._next()
        batch: list[Job] = []
        while job is not None:
            batch.append(job)
            if len(batch) == BATCH:
                return batch
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch
        if batch:
            self._jobs.put(None)
        return batch

    def _next(self) -> Job | None:
        """The next change; None when the store closes."""
        return self._jobs.get()

    def _commit(self, batch: list[Job]) -> None:
        """Commit the changes; those that are not answered yet stay in the batch."""
        started_at, size = time.monotonic(), len(batch)
        try:
            durable = self._commit_all(batch)
        except Exception as error:  # the batch is one transaction: all of it fails
            self._note_full(error)
            for job in batch:
                job.error = self._own_copy(error)
            return
        ended_at = time.monotonic()
        self._commits.append((ended_at, size, ended_at - started_at))
        self._note_full(None)
        self._tell_durable(durable)

    def _make(self, batch: list[Job]) -> Sequence[Row]:
        """Run the changes of a batch in a transaction and commit it; their events, in order."""
        try:
            return self._transaction(batch, self._apply_together if len(batch) > 1 else self._apply_one_by_one)
        except _Replay:
            return self._transaction(batch, self._apply_one_by_one)

    def _transaction(self, batch: list[Job], apply: Apply) -> Sequence[Row]:
        try:
            self._begin()
            events = apply(batch)
            self._end()
        except BaseException:
            self._undo()
            raise
        return events

    def _apply_together(self, batch: list[Job]) -> Sequence[Row]:
        try:
            return self._add([event for job in batch for event in self._apply(job)])
        except BaseException as error:  # raised to whoever requested the change, not in the writer's thread
            if self._storage_error(error):
                raise
            raise _Replay from error

    def _apply_one_by_one(self, batch: list[Job]) -> Sequence[Row]:
        return [event for job in batch for event in self._apply_alone(job)]

    def _apply_alone(self, job: Job) -> Sequence[Row]:
        self._execute("SAVEPOINT alone")
        events: Sequence[Row] = ()
        try:
            events = self._add(self._apply(job))
            job.error = None
        except BaseException as error:
            if self._storage_error(error):
                raise
            job.error, events = raisable(error), ()
            self._execute("ROLLBACK TO alone")
        self._execute("RELEASE alone")
        return events

    def _apply(self, job: Job) -> list[dict[str, Any]]:
        tx = self._tx(job.actor)
        job.result = job.change(tx)
        return tx.events

    def _tell(self, callbacks: Sequence[Callable[[Sequence[Row]], None]], events: Sequence[Row]) -> None:
        for callback in callbacks if events else ():
            callback(events)

    def _tell_durable(self, events: Sequence[Row]) -> None:
        self._tell(self._on_commit, events)

    def _answer(self, batch: list[Job]) -> None:
        for loop in {job.future.get_loop() for job in batch}:
            jobs = [job for job in batch if job.future.get_loop() is loop]
            try:
                loop.call_soon_threadsafe(_resolve, jobs)
            except RuntimeError:
                log.warning("%d writes were committed after their loop had closed", len(jobs))

    def _note_full(self, error: Exception | None) -> None:
        """Note from when until when commits failed because the disk was full."""
        coded = error if isinstance(error, WorkbenchError) else error and self._storage_error(error)
        is_full = isinstance(coded, WorkbenchError) and coded.code == FULL[0]
        lasts = self._full is not None and self._full[1] is None
        if is_full and not lasts:
            since, until = self._full or (0, None)
            goes_on = until is not None and self.now() - until < FULL_AGAIN
            self._full = since if goes_on else self.now(), None
        elif lasts and self._full is not None and not is_full:
            self._full = self._full[0], self.now()

    def _own_copy(self, error: Exception) -> Exception:
        """A copy of a batch's failure for one change: an exception raised repeatedly would collect tracebacks."""
        if isinstance(error, WorkbenchError):
            return error.with_message(error.message)
        duplicate = self._storage_error(error) or copy(error)
        duplicate.__cause__ = error
        return duplicate


class _Replay(Exception):
    """A change raised: the batch must be run again with each change on its own."""


def _resolve(batch: list[Job]) -> None:
    for job in batch:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


def merge_values(values: Values | None, more: Values) -> Values:
    """The parameters of a query, from a mapping and keywords."""
    return {**values, **more} if values and more else values or more


def raisable(error: BaseException) -> BaseException:
    """The error in a form that a future accepts: a `StopIteration` would leave all futures unanswered."""
    if not isinstance(error, StopIteration):
        return error
    replacement = RuntimeError(f"raised StopIteration({error})")
    replacement.__cause__ = error
    return replacement
