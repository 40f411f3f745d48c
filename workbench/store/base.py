"""The store's contract: one writer, many readers, one event feed. It knows no concept of Workbench.

A change is a function that is run in the writer's transaction; acknowledged means committed.
Both databases keep this contract, and one set of tests proves it on each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from workbench.store.queries import Query

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
        """Every row without the names of its columns: for very many of them."""
        ...


class Tx(Reader, Protocol):
    """A transaction that may change the store."""

    actor: str
    """Who asked for the change; written into every event of it."""

    def acting(self, actor: str) -> AbstractContextManager[None]:
        """Have somebody else, such as a rule, be the actor while the block lasts."""
        ...

    def run(self, query: Query, values: Values = ..., /, **more: Any) -> int:
        """Execute a change; the number of rows it touched."""
        ...

    def many(self, query: Query, rows: Iterable[Values]) -> None:
        """Execute a change once for each set of values."""
        ...

    def emit(self, kind: str, subject: str, /, **data: Any) -> None:
        """Add an event (``<noun>.<past>``, about ``<noun>:<id>``) to this very transaction, at its end.

        Reading events, a change does not meet its own.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoreStats:
    """How a store has been doing: commits of this process within the last seconds.

    `commits` holds, for each, when it ended (`time.monotonic`), the changes it acknowledged, and the
    seconds it took from taking the changes to the end of the commit.
    """

    queue: int
    commits: Sequence[tuple[float, int, float]]


class Store(Protocol):
    """What services are given."""

    def now(self) -> int:
        """The store's clock, microseconds UTC."""
        ...

    def stats(self) -> StoreStats:
        """Changes that wait, and the latest commits (a few thousand at most)."""
        ...

    async def write(self, change: Callable[[Tx], T], *, actor: str = ...) -> T:
        """Run `change` in a transaction and return what it returned, after the commit.

        `change` may be run twice (a neighbour in the same commit failed), so it touches nothing
        but the transaction. What it raises rolls it back alone and is raised here.

        Raises:
            Unavailable: ``STORE_BUSY``, ``STORE_FULL``, ``STORE_READ_ONLY``, ``STORE_CORRUPT``,
                ``STORE_CLOSED``; nothing was changed.
        """
        ...

    async def read(self, question: Callable[[Reader], T]) -> T:
        """Run `question` on a reading connection; it never waits for the writer."""
        ...

    async def read_inline(self, question: Callable[[Reader], T]) -> T:
        """Like `read`, for what takes a probe or two of an index: too little to hand to another thread."""
        ...
