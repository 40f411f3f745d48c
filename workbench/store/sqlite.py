"""The store on SQLite: one writer thread with group commit (see `group_commit`), and reading connections beside it.

Changes that are queued together share one transaction and one fsync.
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
import queue
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from workbench.errors import Unavailable, WorkbenchError
from workbench.model import wall_clock
from workbench.store.base import Reader, Row, Statements, Values
from workbench.store.examination import require_whole, store_error
from workbench.store.fence import BUSY_SECONDS, Fence
from workbench.store.group_commit import GroupCommit, Job, Recorder, merge_values, raisable
from workbench.store.log_sync import LogSync, was_left
from workbench.store.mark import MarkKeeper, mark_of
from workbench.store.migrate import migrate, scripts
from workbench.store.queries import Dialect, Query, beside
from workbench.store.rewriting import rewrite
from workbench.store.sqlite_connection import SqliteConnection, connect
from workbench.store.sqlite_errors import storage_error

T = TypeVar("T")

SQL = beside(__file__)
MINIMUM_SQLITE = (3, 38, 0)
CHECKPOINT_PAGES = 1_000
"""The write-ahead log is folded into the database, by the commit itself, when it holds this many pages (4 MB)."""
READERS = 2
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
        cursor = self._db.execute(query.sqlite, merge_values(values, more))
        row = cursor.fetchone()
        return None if row is None else dict(zip(self._db.columns(query, cursor), row, strict=True))

    def all(self, query: Query, values: Values | None = None, /, **more: Any) -> list[Row]:
        """Every row."""
        cursor = self._db.execute(query.sqlite, merge_values(values, more))
        rows = cursor.fetchall()
        if not rows:
            return []
        columns = self._db.columns(query, cursor)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def tuples(self, query: Query, values: Values | None = None, /, **more: Any) -> list[tuple[Any, ...]]:
        """Every row without the names of its columns."""
        return self._db.execute(query.sqlite, merge_values(values, more)).fetchall()


class SqliteTx(Recorder, SqliteReader):
    """The writer's transaction, as one change sees it."""

    def run(self, query: Query, values: Values | None = None, /, **more: Any) -> int:
        """Execute a change; the number of rows it touched."""
        return self._db.execute(query.sqlite, merge_values(values, more)).rowcount

    def many(self, query: Query, rows: Iterable[Values]) -> None:
        """Execute a change once for each set of values."""
        self._db.executemany(query.sqlite, rows)


class SqliteStore(GroupCommit):
    """One project's store; open it with `open_store`, close it with `close`."""

    def __init__(self, path: Path, clock: Callable[[], int] = wall_clock) -> None:
        super().__init__(clock, READERS)
        self.path = self.target = path
        self._fence = Fence.of(path)
        self._connections: list[SqliteConnection] = []
        self._log = LogSync(path)
        self._mark = MarkKeeper(path)
        self._idle: deque[SqliteConnection] = deque()
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
            self._release()
            raise
        self._thread.start()

    async def rewrite(self, changes: Statements, functions: Mapping[str, Callable[..., Any]]) -> None:
        """See `Store.rewrite`."""
        statements = list(changes.statements(Dialect.SQLITE))
        await asyncio.to_thread(rewrite, self.path, statements, functions)

    async def vacuum(self) -> None:
        """See `Store.vacuum`."""
        await asyncio.to_thread(rewrite, self.path, (), {})

    async def read_inline(self, question: Callable[[Reader], T]) -> T:
        """See `Store.read_inline`."""
        with self._closing:
            self._require_open()
            return self._answer_read(question)

    def open_readers(self) -> None:
        """See `Store.open_readers`."""
        try:
            self._idle.extend([self._take_reader() for _ in range(READERS + 1)])  # one is for `read_inline`
        except sqlite3.Error as error:
            raise storage_error(error) or error from error

    def version(self) -> int:
        """See `Store.version`. Costs microseconds."""
        return int(self._version.execute("PRAGMA data_version").fetchone()[0])

    def _release(self) -> None:
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
        super()._run_writer()
        if self._log.seconds_left is not None:
            self._sync_late()
        if self._mark.seconds_left is not None:
            self._mark.write()

    def _next(self) -> Job | None:
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

    def _commit_all(self, batch: list[Job]) -> Sequence[Row]:
        """Commit the changes, and answer those that need not be durable; the others stay in the batch."""
        with self._fence.held(BUSY_SECONDS):
            events = self._make(batch)
        self._tell(self._on_visible, events)
        self._answer([job for job in batch if not job.durable])
        batch[:] = [job for job in batch if job.durable]
        self._log.add(events)
        return self._log.sync() if batch else ()

    def _tell_durable(self, events: Sequence[Row]) -> None:
        self._mark.note(events)
        super()._tell_durable(events)

    def _begin(self) -> None:
        self._writer.execute("BEGIN IMMEDIATE")

    def _end(self) -> None:
        self._writer.execute("COMMIT")

    def _undo(self) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _execute(self, statement: str) -> None:
        self._writer.execute(statement)

    def _tx(self, actor: str) -> SqliteTx:
        return SqliteTx(self._writer, self.now(), actor)

    def _add(self, events: list[dict[str, Any]]) -> Sequence[Row]:
        """Insert events and set their ids, which are consecutive within a transaction."""
        if events:
            self._writer.executemany(SQL.add_event.sqlite, events)
            (last,) = self._writer.execute("SELECT last_insert_rowid()").fetchone()
            for id_, event in enumerate(events, last - len(events) + 1):
                event["id"] = id_
        return events

    def _storage_error(self, error: BaseException) -> WorkbenchError | None:
        return storage_error(error)

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
