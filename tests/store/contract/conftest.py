"""The contract of `workbench.store.base` on every database: a store of notes, and changes to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from workbench.store.base import Reader, Store, Tx
from workbench.store.feed import events_after
from workbench.store.queries import Query

HANGING = [pytest.mark.anyio, pytest.mark.timeout(60, method="thread")]
"""The marks of these tests: a writer that hangs would hang the teardown too."""

T = TypeVar("T")

Change = Callable[[Tx], Any]

MAKE = Query(
    "make",
    """
    CREATE TABLE notes (
        id {{id}}, text TEXT {{postgres}}COLLATE "C"{{end}} NOT NULL UNIQUE, n {{big}} NOT NULL
    ) {{strict}}
    """,
)
ADD = Query("add", "INSERT INTO notes (text, n) VALUES (:text, :n) RETURNING id")
PUT = Query("put", "INSERT INTO notes (text, n) VALUES (:text, :n)")
RAISE = Query("raise", "UPDATE notes SET n = n + 1")
COUNT = Query("count", "SELECT COUNT(*) AS n FROM notes")
TEXTS = Query("texts", "SELECT text FROM notes ORDER BY id")
NOTES = Query("notes", "SELECT id, text, n FROM notes ORDER BY id")
CLEAR = Query("clear", "DELETE FROM notes")
WRONG = Query("wrong", "INSERT INTO nowhere (text) VALUES (:text)")


class Sorry(Exception):
    """The exception that a change of these tests raises on purpose."""


@pytest.fixture
async def store(store: Store) -> Store:
    """An open store with a table of the tests' own."""
    await store.write(lambda tx: tx.run(MAKE))
    return store


def add(text: str, n: int = 0) -> Callable[[Tx], int]:
    """A change that adds a note, says so, and returns the note's id."""

    def change(tx: Tx) -> int:
        row = tx.one(ADD, text=text, n=n)
        assert row is not None
        tx.emit("note.added", f"note:{text}", n=n)
        return int(row["id"])

    return change


def add_and_fail(text: str) -> Change:
    def change(tx: Tx) -> None:
        add(text)(tx)
        raise Sorry(text)

    return change


def texts(tx: Reader) -> list[str]:
    return [row["text"] for row in tx.all(TEXTS)]


def count(tx: Reader) -> int:
    row = tx.one(COUNT)
    assert row is not None
    return int(row["n"])


async def added(store: Store, after: int = 0) -> list[str]:
    """The notes that the events name as added."""
    events = await store.read(lambda tx: events_after(tx, after, limit=100_000))
    return [event.subject.removeprefix("note:") for event in events if event.kind == "note.added"]


@asynccontextmanager
async def queue_held(store: Store) -> AsyncIterator[None]:
    """Keep the writer busy, so that what is written meanwhile is queued and committed together."""
    entered, gate = threading.Event(), threading.Event()

    def wait(tx: Tx) -> None:
        entered.set()
        gate.wait()

    waiting = asyncio.create_task(store.write(wait))
    await asyncio.to_thread(entered.wait)
    try:
        yield
    finally:
        gate.set()
        await waiting


async def queued(*writes: Coroutine[Any, Any, T]) -> list[asyncio.Task[T]]:
    """Tasks of writes that have been handed to the writer, in this order."""
    tasks = [asyncio.create_task(write) for write in writes]
    await asyncio.sleep(0)
    return tasks


async def together(store: Store, *changes: Change) -> list[Any]:
    """Run changes in one batch; what each returned or raised."""
    async with queue_held(store):
        tasks = await queued(*map(store.write, changes))
    return await asyncio.gather(*tasks, return_exceptions=True)
