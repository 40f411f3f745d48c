"""The store on PostgreSQL: one database is one project's store, which several machines may share.

Each process has one writer thread with group commit (see `group_commit`). The writers of all processes take turns:
each transaction begins with one advisory lock. So a change sees what all before it did, the ids of events are in the
order of their commits, and a reader of the feed misses none. Every commit is durable.

A commit whose answer is lost is looked up: its transaction has a number, and the lock is free only when it has ended.
What certainly was not made is made again, once, on a new connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

import psycopg

from workbench.errors import Unavailable, WorkbenchError
from workbench.model import wall_clock
from workbench.state.database_url import DatabaseUrl
from workbench.store.base import Reader, Row, Statements, Values
from workbench.store.group_commit import GroupCommit, Job, Recorder, merge_values, raisable
from workbench.store.migrate import created_at, migrate, require_current, scripts
from workbench.store.postgres_connection import TAKE_LOCK, Connector, PostgresConnection, ServerClock
from workbench.store.postgres_errors import is_lost, opening_error, storage_error
from workbench.store.postgres_listener import Listener
from workbench.store.postgres_rewriting import rewrite
from workbench.store.queries import Dialect, Query, beside

T = TypeVar("T")

SQL = beside(__file__)
READERS = 4
CLOCK = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"
BEGIN = f"BEGIN ISOLATION LEVEL READ COMMITTED; {TAKE_LOCK}; {CLOCK}"
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
NUMBER = "SELECT CAST(pg_current_xact_id_if_assigned() AS TEXT)"
UNCERTAIN = (
    "STORE_UNCERTAIN",
    "The connection to PostgreSQL was lost during the commit, and there is no new one. Nobody knows yet whether the "
    "change was made: look before you repeat it.",
)

log = logging.getLogger(__name__)


class PostgresReader:
    """A view of the database on one connection."""

    __slots__ = ("_db", "now")

    def __init__(self, db: PostgresConnection, now: int) -> None:
        self._db = db
        self.now = now

    def one(self, query: Query, values: Values | None = None, /, **more: Any) -> Row | None:
        """The first row, or None."""
        result = self._db.run(query, merge_values(values, more))
        rows = self._db.rows(result)
        return dict(zip(self._db.columns(query, result), rows[0], strict=True)) if rows else None

    def all(self, query: Query, values: Values | None = None, /, **more: Any) -> list[Row]:
        """Every row."""
        result = self._db.run(query, merge_values(values, more))
        columns = self._db.columns(query, result)
        return [dict(zip(columns, row, strict=True)) for row in self._db.rows(result)]

    def tuples(self, query: Query, values: Values | None = None, /, **more: Any) -> list[tuple[Any, ...]]:
        """Every row without the names of its columns."""
        return self._db.query(query, merge_values(values, more))


class PostgresTx(Recorder, PostgresReader):
    """The writer's transaction, as one change sees it."""

    def run(self, query: Query, values: Values | None = None, /, **more: Any) -> int:
        """Execute a change; the number of rows it touched."""
        return self._db.run(query, merge_values(values, more)).command_tuples or 0

    def many(self, query: Query, rows: Iterable[Values]) -> None:
        """Execute a change once for each set of values."""
        self._db.many(query, rows)


class PostgresStore(GroupCommit):
    """One project's store; open it with `open_store`, close it with `close`."""

    def __init__(
        self,
        target: str,
        clock: Callable[[], int] | None = None,
        recognise: Callable[[int | None], None] | None = None,
    ) -> None:
        self._server_clock = ServerClock()
        super().__init__(clock or self._server_clock, READERS)
        self.target = target
        self._connector = Connector(target)
        self._listener = Listener(self._connector)
        self._idle: deque[PostgresConnection] = deque()
        self._number: str | None = None
        """The number of the transaction, once there is one."""
        self._writer = self._connector.connect(patience=0)
        try:
            self._server_clock.set(*self._writer.ask(CLOCK))
            if recognise is not None:
                recognise(created_at(self._writer))
            self.migrated = migrate(self._writer, scripts(), self.now())
        except BaseException:
            self._writer.close()
            raise
        self._thread.start()

    async def rewrite(self, changes: Statements, functions: Mapping[str, Callable[..., Any]]) -> None:
        """See `Store.rewrite`."""
        statements = list(changes.statements(Dialect.POSTGRES))

        def change() -> None:
            with closing(self._connector.connect()) as db:
                rewrite(db, statements, functions)

        try:
            await asyncio.to_thread(change)
        except psycopg.Error as error:
            raise storage_error(error) or error from error

    async def vacuum(self) -> None:
        """See `Store.vacuum`."""

    async def read_inline(self, question: Callable[[Reader], T]) -> T:
        """The same as `read`: on the loop's thread, all would wait for the network."""
        return await self.read(question)

    def open_readers(self) -> None:
        """See `Store.open_readers`."""
        try:
            self._idle.extend([self._take_reader() for _ in range(READERS)])
        except psycopg.Error as error:
            raise storage_error(error) or error from error

    def version(self) -> int:
        """See `Store.version`."""
        return self._listener.heard

    def _release(self) -> None:
        self._pool.shutdown()
        self._listener.close()
        for connection in (*self._idle, self._writer):
            connection.close()

    # The writer's thread.

    def _commit_all(self, batch: list[Job]) -> Sequence[Row]:
        try:
            events = self._make(batch)
        except psycopg.Error as error:
            if not is_lost(error):
                raise
            log.info("the connection to PostgreSQL was lost; what was not committed is done again")
            self._writer.close()
            events = self._make(batch)
        self._tell(self._on_visible, events)
        return events

    def _begin(self) -> None:
        if self._writer.is_closed:
            self._writer = self._connector.connect()
        self._number = None
        self._server_clock.set(*self._writer.ask(BEGIN))

    def _end(self) -> None:
        number = self._number or self._writer.ask(NUMBER)[0]
        try:
            self._writer.execute("COMMIT")
        except psycopg.Error as error:
            if not is_lost(error) or number is None:
                raise
            if not self._was_committed(number):
                raise

    def _was_committed(self, number: str) -> bool:
        """Whether a transaction was committed whose connection was lost.

        Raises:
            Unavailable: ``STORE_UNCERTAIN``.
        """
        self._writer.close()
        try:
            self._writer = self._connector.connect()
            self._writer.ask(f"BEGIN; {TAKE_LOCK}")  # the server may not have noticed yet, and still be committing
            (status,) = self._writer.ask(f"SELECT pg_xact_status('{int(number)}')")
            self._writer.execute("COMMIT")
        except (psycopg.Error, WorkbenchError) as error:
            self._writer.close()
            raise Unavailable(*UNCERTAIN) from error
        return bool(status == "committed")

    def _undo(self) -> None:
        self._writer.roll_back()

    def _execute(self, statement: str) -> None:
        self._writer.execute(statement)

    def _tx(self, actor: str) -> PostgresTx:
        return PostgresTx(self._writer, self.now(), actor)

    def _apply(self, job: Job) -> list[dict[str, Any]]:
        events = super()._apply(job)
        if self._writer.has_failed:
            raise psycopg.errors.InFailedSqlTransaction("a change went on after one of its statements had failed")
        return events

    def _add(self, events: list[dict[str, Any]]) -> Sequence[Row]:
        """Insert events and set their ids, which are in their order."""
        if events:
            columns = {f"{name}s": [event[name] for event in events] for name in events[0]}
            rows = self._writer.query(SQL.add_events, columns)
            for event, (id_, self._number, _) in zip(events, rows, strict=True):
                event["id"] = id_
        return events

    def _storage_error(self, error: BaseException) -> WorkbenchError | None:
        return storage_error(error)

    # Reading.

    def _answer_read(self, question: Callable[[Reader], T]) -> T:
        try:
            try:
                return self._read_once(question)
            except psycopg.Error as error:
                if not is_lost(error):
                    raise
                return self._read_once(question)
        except psycopg.Error as error:
            raise storage_error(error) or error from error
        except StopIteration as error:
            raise raisable(error) from error

    def _read_once(self, question: Callable[[Reader], T]) -> T:
        db = self._take_reader()
        try:
            db.execute(BEGIN_READING)
            answer = question(PostgresReader(db, self.now()))
            db.execute("COMMIT")
        except BaseException as error:
            if is_lost(error):
                self._discard_readers(db)
            db.roll_back()
            raise
        finally:
            if not db.is_closed:
                self._idle.append(db)
        return answer

    def _discard_readers(self, db: PostgresConnection) -> None:
        """Close a lost connection, and those that were idle meanwhile: they are lost, too."""
        db.close()
        while self._idle:
            self._idle.pop().close()

    def _take_reader(self) -> PostgresConnection:
        """Take an idle reading connection, or open one. The caller puts it back into `_idle`."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._connector.connect()


def open_store(
    target: str, clock: Callable[[], int] | None = None, recognise: Callable[[int | None], None] | None = None
) -> PostgresStore:
    """Open the store of a project, and create and migrate it if necessary. Blocks for some milliseconds.

    Args:
        target, recognise: see `workbench.store.opening.open_store`.
        clock: instead of that of the server.

    Raises:
        Unavailable, BadInput: see `Connector.connect`; ``STORE_REFUSED``, ``STORE_BUSY``, ``MIGRATION_FAILED``.
        Conflict: ``MIGRATION_DRIFT``, ``MIGRATION_UNKNOWN``.
    """
    try:
        return PostgresStore(target, clock, recognise)
    except psycopg.Error as error:
        raise opening_error(target, error) from error


def read_database(target: str, question: Callable[[PostgresReader], T]) -> T:
    """Run `question` on a consistent view of a store, which stays as it is.

    Raises:
        Conflict: ``PROJECT_OUTDATED``, ``MIGRATION_DRIFT``, ``MIGRATION_UNKNOWN``.
        Unavailable, BadInput: see `Connector.connect`; ``STORE_REFUSED``.
    """
    try:
        with closing(Connector(target).connect(patience=0)) as db:
            db.execute(BEGIN_READING)
            require_current(db, f"The store in the database {DatabaseUrl(target)}")
            return question(PostgresReader(db, wall_clock()))
    except psycopg.Error as error:
        raise opening_error(target, error) from error
