"""The store's contract: one writer, many readers, one event feed. It is independent of Workbench's tables.

A change is a function that runs in the writer's transaction; when it is acknowledged, it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from workbench.store.queries import Dialect, Query

T = TypeVar("T")

Row = Mapping[str, Any]
Values = Mapping[str, Any]


class Reader(Protocol):
    """A consistent view of the store."""

    now: int
    """The store's clock, microseconds UTC."""

    def one(self, query: Query, values: Values = ..., /, **more: Any) -> Row | None:
        """The first row, or None."""
        ...

    def all(self, query: Query, values: Values = ..., /, **more: Any) -> list[Row]:
        """Every row."""
        ...

    def tuples(self, query: Query, values: Values = ..., /, **more: Any) -> list[tuple[Any, ...]]:
        """Every row as a tuple, without column names: cheaper for very many rows."""
        ...


class Tx(Reader, Protocol):
    """A transaction that may change the store."""

    actor: str
    """The agent or person that requested the change; recorded in each of its events."""

    def acting(self, actor: str) -> AbstractContextManager[None]:
        """Record the changes in the block as made by another actor, such as a rule."""
        ...

    def run(self, query: Query, values: Values = ..., /, **more: Any) -> int:
        """Execute a change; the number of rows it touched."""
        ...

    def many(self, query: Query, rows: Iterable[Values]) -> None:
        """Execute a change once for each set of values."""
        ...

    def emit(self, kind: str, subject: str, /, **data: Any) -> None:
        """Add an event (``<noun>.<past>``, about ``<noun>:<id>``) at the end of this transaction.

        A change that reads events does not see its own.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Statistics of a store: the queued changes, and the latest commits of this process.

    For each commit, `commits` holds when it ended (`time.monotonic`), the number of changes in it, and the seconds
    from taking the changes from the queue to the end of the commit.

    `full` is from when until when changes last failed because the disk was full, in microseconds UTC; the second is
    None as long as it lasts.
    """

    queue: int
    commits: Sequence[tuple[float, int, float]]
    full: tuple[int, int | None] | None = None


class Statements(Protocol):
    """SQL statements; see `workbench.store.migrate.Script`."""

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """The single statements for a database."""
        ...


class Store(Protocol):
    """The store, as services use it."""

    migrated: list[str]
    """The migrations that were run when it was opened."""

    @property
    def target(self) -> Path | str:
        """Where it is: SQLite's file; or a PostgreSQL database as libpq takes it, which may have a password."""
        ...

    def now(self) -> int:
        """The store's clock, microseconds UTC."""
        ...

    def stats(self) -> StoreStats:
        """The number of queued changes, and the latest commits (a few thousand at most)."""
        ...

    async def write(self, change: Callable[[Tx], T], *, actor: str = ..., durable: bool = True) -> T:
        """Run `change` in a transaction and return what it returned, after the commit.

        `change` may run twice (when another change in the same commit fails), so it must touch
        nothing but the transaction. If it raises, it alone is rolled back, and the error is raised here.

        Args:
            durable: wait until not even a power failure can undo the change. Otherwise this waits until it is
                committed, so that others can read it and the end of this process cannot undo it. It becomes durable
                soon after, at the latest with the next durable change, and the feed has its events only then.

        Raises:
            Unavailable: ``STORE_BUSY``, ``STORE_FULL``, ``STORE_READ_ONLY``, ``STORE_CORRUPT``,
                ``STORE_CLOSED``; nothing was changed.
        """
        ...

    async def rewrite(self, changes: Statements, functions: Mapping[str, Callable[..., Any]]) -> None:
        """Change rows so that no file of the store holds their old values any more.

        It takes longer the larger the store is, and others wait for it. If it is interrupted, do it again.

        Args:
            functions: the functions that the statements call, by name, each with one parameter.

        Raises:
            Unavailable: as `write`; ``STORE_BUSY`` also while others read.
        """
        ...

    async def vacuum(self) -> None:
        """Give the free space of the store back to the file system. Others wait, the longer the larger it is.

        On PostgreSQL this is left to the server, whose autovacuum has free space used again.

        Raises:
            Unavailable: as `rewrite`.
        """
        ...

    async def read(self, question: Callable[[Reader], T]) -> T:
        """Run `question` on a reading connection; it never waits for the writer."""
        ...

    async def read_inline(self, question: Callable[[Reader], T]) -> T:
        """Like `read`, for one or two index lookups: on SQLite on the loop's thread, as they are not worth another one.

        On PostgreSQL the loop goes on meanwhile, so what is kept from the answer may be out of date already.
        """
        ...

    def open_readers(self) -> None:
        """Open the connections that reading needs, so that it works when the process may open no more files.

        Blocks for some milliseconds. Without it they are opened when they are first needed.

        Raises:
            Unavailable: ``STORE_UNREADABLE`` and others.
        """
        ...

    def on_visible(self, callback: Callable[[Sequence[Row]], None]) -> None:
        """Call `callback`, in the writer's thread, with the events of each commit as soon as it can be read.

        This is for caches, whose content is then out of date. The commit may not be durable yet.
        """
        ...

    def on_commit(self, callback: Callable[[Sequence[Row]], None]) -> None:
        """Call `callback` with the events of each commit that has any.

        It is called in the writer's thread, before the changes of the commit are acknowledged.
        """
        ...

    def version(self) -> int:
        """A number that changes when any connection, of any process, commits events. Never waits."""
        ...

    def close(self) -> None:
        """Make the queued changes, then close the connections. May be called twice."""
        ...
