"""The store on SQLite: one writer thread with group commit, and reading connections beside it.

Changes that are queued together share one transaction and one fsync. When one of them raises, the
transaction is rolled back and replayed with a savepoint around each, so that it fails alone.
Writers of all processes, and checkpoints, hold one file lock (the fence): it is fair, while SQLite's
own busy handler lets writers starve, and it keeps a checkpoint from racing with a writer.

A commit is synced after the fence is free, and acknowledged after that, unless it need not be durable: the
syncs of several processes overlap. Others may therefore read a change that a power failure still undoes, but
their own later changes are never kept without it: both are in one log, and a sync covers everything written
before it. That is SQLite's `synchronous = NORMAL`, which syncs the log's header and each checkpoint itself,
and our own sync of the log. A commit that need not be durable waits a moment for one that must be, so that a
call's beginning and its end are synced together.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import to_json

from workbench.errors import Unavailable
from workbench.model import SECOND, wall_clock
from workbench.store.base import Reader, Row, Statements, StoreStats, Tx, Values
from workbench.store.examination import require_whole, store_error
from workbench.store.fence import BUSY_SECONDS, Fence
from workbench.store.log_sync import LogSync, was_left
from workbench.store.mark import MarkKeeper, mark_of
from workbench.store.migrate import migrate, scripts
from workbench.store.queries import Dialect, Query, beside
from workbench.store.rewriting import rewrite
from workbench.store.sqlite_connection import SqliteConnection, connect
from workbench.store.sqlite_errors import is_full_disk, own_copy, raisable, storage_error

T = TypeVar("T")

SQL = beside(__file__)
MINIMUM_SQLITE = (3, 38, 0)
BATCH = 512
"""The most changes in one transaction."""
CHECKPOINT_PAGES = 1_000
"""The write-ahead log is folded into the database, by the commit itself, when it holds this many pages (4 MB)."""
READERS = 2
STATS_COMMITS = 4_096
FULL_AGAIN = 60 * SECOND
"""A disk that is full again so soon counts as full all the time."""
CHECK_SECONDS = 2.0
"""How long SQLite may look for damage, at most, before a store is opened after a crash."""

log = logging.getLogger(__name__)


class SqliteReader:
    """A view of the database on one connection."""

    __slots__ = ("_db", "now")

    def __init__(self, db: SqliteConnection, now: int) -> None:
        self._db = db
        self.now = now

    def one(self, query: Query, values: Values | None = None, /, **more: Any) -> Row | None:
        """The first row, or None."""
        cursor = self._db.execute(query.sqlite, _merge_values(values, more))
        row = cursor.fetchone()
        return None if row is None else dict(zip(self._db.columns(query, cursor), row, strict=True))

    def all(self, query: Query, values: Values | None = None, /, **more: Any) -> list[Row]:
        """Every row."""
        cursor = self._db.execute(query.sqlite, _merge_values(values, more))
        rows = cursor.fetchall()
        if not rows:
            return []
        columns = self._db.columns(query, cursor)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def tuples(self, query: Query, values: Values | None = None, /, **more: Any) -> list[tuple[Any, ...]]:
        """Every row without the names of its columns."""
        return self._db.execute(query.sqlite, _merge_values(values, more)).fetchall()


class SqliteTx(SqliteReader):
    """The writer's transaction, as one change sees it."""

    __slots__ = ("actor", "events")

    def __init__(self, db: SqliteConnection, now: int, actor: str) -> None:
        super().__init__(db, now)
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

    def run(self, query: Query, values: Values | None = None, /, **more: Any) -> int:
        """Execute a change; the number of rows it touched."""
        return self._db.execute(query.sqlite, _merge_values(values, more)).rowcount

    def many(self, query: Query, rows: Iterable[Values]) -> None:
        """Execute a change once for each set of values."""
        self._db.executemany(query.sqlite, rows)

    def emit(self, kind: str, subject: str, /, **data: Any) -> None:
        """See `Tx.emit`. The events of all changes of a commit are inserted together."""
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


@dataclass(slots=True)
class _Job:
    change: Callable[[Tx], Any]
    actor: str
    future: asyncio.Future[Any]
    durable: bool
    result: Any = None
    error: BaseException | None = None


class SqliteStore:
    """One project's store; open it with `open_store`, close it with `close`."""

    def __init__(self, path: Path, clock: Callable[[], int] = wall_clock) -> None:
        self.path = path
        self._clock = clock
        self._fence = Fence.of(path)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._on_visible: list[Callable[[Sequence[Row]], None]] = []
        self._on_commit: list[Callable[[Sequence[Row]], None]] = []
        self._full: tuple[int, int | None] | None = None
        self._commits: deque[tuple[float, int, float]] = deque(maxlen=STATS_COMMITS)
        self._closing = threading.Lock()
        self._closed = False
        self._pid = os.getpid()
        self._connections: list[SqliteConnection] = []
        self._log = LogSync(path)
        self._mark = MarkKeeper(path)
        self._idle: deque[SqliteConnection] = deque()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="workbench-read")
        try:
            with self._fence.held(BUSY_SECONDS):  # SQLite does not wait for another process that creates the file
                _require_whole(path)
                self._writer = self._connect()
                self._writer.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
                self._writer.execute("PRAGMA synchronous = NORMAL")  # `LogSync` does the rest
                self._version = self._connect()
                self._log.open()
                self.migrated = migrate(self._writer, scripts(), self.now())
                self._log.sync()
                self._mark.begin(mark_of(self._writer))
        except BaseException:
            self._close_files()
            raise
        self._thread = threading.Thread(target=self._run_writer, name="workbench-writer", daemon=True)
        self._thread.start()

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
            self._jobs.put(_Job(change, actor, future, durable))
        return await future

    async def rewrite(self, changes: Statements, functions: Mapping[str, Callable[..., Any]]) -> None:
        """See `Store.rewrite`."""
        statements = list(changes.statements(Dialect.SQLITE))
        await asyncio.to_thread(rewrite, self.path, statements, functions)

    async def read(self, question: Callable[[Reader], T]) -> T:
        """See `Store.read`."""
        with self._closing:
            self._require_open()
            answer = asyncio.get_running_loop().run_in_executor(self._pool, self._answer_read, question)
        return await answer

    async def read_inline(self, question: Callable[[Reader], T]) -> T:
        """See `Store.read_inline`."""
        with self._closing:
            self._require_open()
            return self._answer_read(question)

    def open_readers(self) -> None:
        """Open the connections that reading needs, so that it works when the process may open no more files.

        Blocks for some milliseconds. Without it they are opened when they are first needed.

        Raises:
            Unavailable: ``STORE_UNREADABLE`` and others.
        """
        try:
            self._idle.extend([self._take_reader() for _ in range(READERS + 1)])  # one is for `read_inline`
        except sqlite3.Error as error:
            raise storage_error(error) or error from error

    def on_visible(self, callback: Callable[[Sequence[Row]], None]) -> None:
        """Call `callback`, in the writer's thread, with the events of each commit as soon as it can be read.

        This is for caches, whose content is then out of date. The commit is not synced yet.
        """
        self._on_visible.append(callback)

    def on_commit(self, callback: Callable[[Sequence[Row]], None]) -> None:
        """Call `callback` with the events of each commit that has any.

        It is called in the writer's thread, before the changes of the commit are acknowledged.
        """
        self._on_commit.append(callback)

    def version(self) -> int:
        """A number that changes when any connection, of any process, commits. Costs microseconds."""
        return int(self._version.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Make the queued changes, then close the file. May be called twice."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        self._thread.join()
        self._close_files()

    def _require_open(self) -> None:
        if self._closed or self._pid != os.getpid():
            raise Unavailable("STORE_CLOSED", "The store is closed. Start Workbench again.")

    def _close_files(self) -> None:
        self._pool.shutdown()
        for db in reversed(self._connections):
            db.close()
        self._fence.close()
        self._log.close()

    def _connect(self) -> SqliteConnection:
        db = connect(self.path)
        self._connections.append(db)
        return db

    # The writer's thread.

    def _run_writer(self) -> None:
        while batch := self._take():
            self._commit(batch)
            self._answer(batch)
            batch.clear()  # so that the requesters free their results one by one, not this thread all at once
        if self._log.seconds_left is not None:
            self._sync_late()
        if self._mark.seconds_left is not None:
            self._mark.write()

    def _take(self) -> list[_Job]:
        """The queued changes; an empty list when the store closes."""
        job = self._next()
        batch: list[_Job] = []
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

    def _next(self) -> _Job | None:
        """The next change; None when the store closes. Meanwhile, commits are synced and the mark is written when they
        are due."""
        while True:
            sync, mark = self._log.seconds_left, self._mark.seconds_left
            if sync == 0:
                self._sync_late()
            elif mark == 0:
                self._mark.write()
            else:
                try:
                    return self._jobs.get(timeout=mark if sync is None else sync)  # a sync is due sooner
                except queue.Empty:
                    pass

    def _sync_late(self) -> None:
        """Sync commits that no caller waits for."""
        try:
            events = self._log.sync()
        except Unavailable:
            log.warning("what was committed is not durable yet", exc_info=True)
        else:
            self._tell_durable(events)

    def _commit(self, batch: list[_Job]) -> None:
        """Commit the changes, and answer those that need not be durable; the others stay in the batch."""
        started_at, size = time.monotonic(), len(batch)
        try:
            with self._fence.held(BUSY_SECONDS):
                try:
                    events = self._transaction(
                        batch, self._apply_together if len(batch) > 1 else self._apply_one_by_one
                    )
                except _Replay:
                    events = self._transaction(batch, self._apply_one_by_one)
            self._tell(self._on_visible, events)
            self._answer([job for job in batch if not job.durable])
            batch[:] = [job for job in batch if job.durable]
            self._log.add(events)
            synced = self._log.sync() if batch else ()
        except Exception as error:  # the batch is one transaction: all of it fails
            self._note_full(error)
            for job in batch:
                job.error = own_copy(error)
            return
        ended_at = time.monotonic()
        self._commits.append((ended_at, size, ended_at - started_at))
        self._note_full(None)
        self._tell_durable(synced)

    def _note_full(self, error: Exception | None) -> None:
        """Note from when until when commits failed because the disk was full."""
        is_full, lasts = is_full_disk(error), self._full is not None and self._full[1] is None
        if is_full and not lasts:
            since, until = self._full or (0, None)
            goes_on = until is not None and self.now() - until < FULL_AGAIN
            self._full = since if goes_on else self.now(), None
        elif lasts and self._full is not None and not is_full:
            self._full = self._full[0], self.now()

    def _tell(self, callbacks: Sequence[Callable[[Sequence[Row]], None]], events: Sequence[Row]) -> None:
        for callback in callbacks if events else ():
            callback(events)

    def _tell_durable(self, events: Sequence[Row]) -> None:
        self._mark.note(events)
        self._tell(self._on_commit, events)

    def _transaction(self, batch: list[_Job], apply: Callable[[list[_Job]], Sequence[Row]]) -> Sequence[Row]:
        """Run the changes of a batch and commit them; their events, in order."""
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            events = apply(batch)
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise
        return events

    def _apply_together(self, batch: list[_Job]) -> Sequence[Row]:
        try:
            return self._add([event for job in batch for event in self._apply(job)])
        except BaseException as error:  # raised to whoever requested the change, not in the writer's thread
            if storage_error(error):
                raise
            raise _Replay from error

    def _apply_one_by_one(self, batch: list[_Job]) -> Sequence[Row]:
        return [event for job in batch for event in self._apply_alone(job)]

    def _apply_alone(self, job: _Job) -> Sequence[Row]:
        self._writer.execute("SAVEPOINT alone")
        events: Sequence[Row] = ()
        try:
            events = self._add(self._apply(job))
        except BaseException as error:
            if storage_error(error):
                raise
            job.error, events = raisable(error), ()
            self._writer.execute("ROLLBACK TO alone")
        self._writer.execute("RELEASE alone")
        return events

    def _apply(self, job: _Job) -> list[dict[str, Any]]:
        tx = SqliteTx(self._writer, self.now(), job.actor)
        job.result = job.change(tx)
        return tx.events

    def _add(self, events: list[dict[str, Any]]) -> Sequence[Row]:
        """Insert events and set their ids, which are consecutive within a transaction."""
        if events:
            self._writer.executemany(SQL.add_event.sqlite, events)
            (last,) = self._writer.execute("SELECT last_insert_rowid()").fetchone()
            for id_, event in enumerate(events, last - len(events) + 1):
                event["id"] = id_
        return events

    def _answer(self, batch: list[_Job]) -> None:
        for loop in {job.future.get_loop() for job in batch}:
            jobs = [job for job in batch if job.future.get_loop() is loop]
            try:
                loop.call_soon_threadsafe(_resolve, jobs)
            except RuntimeError:
                log.warning("%d writes were committed after their loop had closed", len(jobs))

    # Reading.

    def _answer_read(self, question: Callable[[Reader], T]) -> T:
        try:
            db = self._take_reader()
            try:
                db.execute("BEGIN")
                try:
                    return question(SqliteReader(db, self.now()))
                finally:
                    db.execute("COMMIT")
            finally:
                self._idle.append(db)
        except sqlite3.Error as error:
            raise storage_error(error) or error from error
        except StopIteration as error:
            raise raisable(error) from error

    def _take_reader(self) -> SqliteConnection:
        """Take an idle reading connection, or open one. The caller puts it back into `_idle`."""
        try:
            return self._idle.pop()
        except IndexError:
            db = self._connect()
            db.execute("PRAGMA query_only = ON")
            return db


def _merge_values(values: Values | None, more: Values) -> Values:
    return {**values, **more} if values and more else values or more


class _Replay(Exception):
    """A change raised: the batch must be run again with each change on its own."""


def _resolve(batch: list[_Job]) -> None:
    for job in batch:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


def _require_whole(path: Path) -> None:
    """Refuse a store that is damaged or lacks something; call it within the fence. See `require_whole`.

    SQLite looks for damage only if the last process did not close the store, and only for `CHECK_SECONDS`.
    """
    if not require_whole(path, CHECK_SECONDS, thorough=was_left(path)):
        log.info(
            "the store is large: it was looked at for %g s after a crash; `workbench doctor` looks at all",
            CHECK_SECONDS,
        )


def open_store(path: Path, clock: Callable[[], int] = wall_clock) -> SqliteStore:
    """Open the store of a project, and create and migrate it if necessary. Blocks for some milliseconds.

    Raises:
        Unavailable: ``SQLITE_TOO_OLD``, ``PROJECT_UNWRITABLE``, ``STORE_UNREADABLE``,
            ``STORE_READ_ONLY``, ``STORE_CORRUPT``, ``STORE_INCOMPLETE``, ``MIGRATION_FAILED``.
        Conflict: ``MIGRATION_DRIFT``, ``MIGRATION_UNKNOWN``.
    """
    if sqlite3.sqlite_version_info < MINIMUM_SQLITE:
        raise Unavailable(
            "SQLITE_TOO_OLD",
            f"SQLite {sqlite3.sqlite_version} is too old; Workbench needs "
            f"{'.'.join(map(str, MINIMUM_SQLITE))}. Use a newer Python build.",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return SqliteStore(path, clock)
    except OSError as error:
        raise Unavailable(
            "PROJECT_UNWRITABLE",
            f"Workbench cannot write to {path.parent}: {error.strerror}. "
            "Make the directory writable, or choose another project with WORKBENCH_PROJECT.",
            path=str(path.parent),
        ) from error
    except sqlite3.Error as error:
        raise store_error(path, error) from error
