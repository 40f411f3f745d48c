"""`kill -9` of a process that writes: every acknowledged write is there, whole, and once.

Run as a program, this file is that process: it writes without end and says what was acknowledged.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.chance import SOAK, chance
from tests.conftest import NewDatabase
from workbench.store.base import Tx
from workbench.store.opening import open_store
from workbench.store.queries import Query

CHAOS = [pytest.mark.chaos, pytest.mark.timeout(3_000 if SOAK else 900)]
"""How many times longer the long runs are: each unit adds ten times their usual length."""

MAKE = Query("make", "CREATE TABLE IF NOT EXISTS notes (text TEXT PRIMARY KEY, n {{big}} NOT NULL) {{strict}}")
ADD = Query("add", "INSERT INTO notes (text, n) VALUES (:text, 0)")
FINISH = Query("finish", "UPDATE notes SET n = n + 1 WHERE text = :text")
COUNT = Query("count", "SELECT COUNT(*) FROM notes WHERE text LIKE :name || '-%'")
NOTES = Query("notes", "SELECT text, n FROM notes")
SUBJECTS = Query("subjects", "SELECT subject FROM events")
CONCURRENT = 32

Target = Path | str
"""Where a store is; see `open_store`."""


@pytest.fixture
def target(new_database: NewDatabase, tmp_path: Path) -> Target:
    """A store of the test's own."""
    database = new_database()
    return str(database["database_url"].conninfo) if database else tmp_path / "coordination.db"


def add(text: str) -> Any:
    """A change of several statements and an event."""

    def change(tx: Tx) -> None:
        tx.run(ADD, text=text)
        tx.emit("note.added", f"note:{text}", padding="x" * 200)
        tx.run(FINISH, text=text)

    return change


async def write_without_end(target: Target, name: str) -> None:
    """Write from many tasks at once; a line for each write that was acknowledged."""
    store = open_store(target)
    await store.write(lambda tx: tx.run(MAKE))
    numbers = itertools.count()

    async def write() -> None:
        for number in numbers:
            await store.write(add(f"{name}-{number}"))
            print(f"{name}-{number}", flush=True)

    await asyncio.gather(*(write() for _ in range(CONCURRENT)))


def killed_after(process: subprocess.Popen[str], acknowledged: int) -> list[str]:
    """Kill a writer when it has had so many answers; all the answers it had."""
    assert process.stdout is not None
    heard = [process.stdout.readline() for _ in range(acknowledged)]
    process.kill()
    heard += process.stdout.readlines()
    assert process.wait() == -signal.SIGKILL
    return [line.strip() for line in heard if line.endswith("\n")]


def asked(target: Target, query: Query, **values: str) -> list[tuple[Any, ...]]:
    """The rows that a query selects from a store that others may use."""
    with closing(open_store(target)) as store:
        return asyncio.run(store.read(lambda tx: tx.tuples(query, values)))


def check(target: Target, acknowledged: list[str]) -> None:
    """Nothing acknowledged is missing, nothing is half there or there twice, and a file is sound."""
    notes = dict(asked(target, NOTES))
    events = Counter(subject for (subject,) in asked(target, SUBJECTS))
    if isinstance(target, Path):
        with closing(sqlite3.connect(target)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert len(set(acknowledged)) == len(acknowledged)
    assert set(acknowledged) <= set(notes)
    assert set(notes.values()) == {1}
    assert events == dict.fromkeys((f"note:{text}" for text in notes), 1)


@pytest.mark.parametrize(
    ("writes", "rounds"),
    [
        pytest.param(300, 2, id="short", marks=pytest.mark.long),
        pytest.param(10_000, 44 * SOAK or 3, id="long", marks=CHAOS),
    ],
)
def test_killed_writers_lose_no_acknowledged_write_and_block_no_other(
    child: Any, target: Target, writes: int, rounds: int
) -> None:
    random = chance()
    acknowledged: list[str] = []
    for number in range(rounds):
        alone = child(__file__, target, f"alone{number}")
        acknowledged += killed_after(alone, random.randrange(writes // 5, writes))
        check(target, acknowledged)
    survivor = child(__file__, target, "survivor")
    survived: list[str] = []
    for number in range(rounds):
        victim = child(__file__, target, f"round{number}")
        acknowledged += killed_after(victim, random.randrange(1, writes // 4))
        ((until_then,),) = asked(target, COUNT, name="survivor")
        while len(survived) < until_then + writes // 4:
            survived.append(survivor.stdout.readline().strip())
    check(target, acknowledged + survived + killed_after(survivor, writes // 4))


if __name__ == "__main__":
    where, name = sys.argv[1:]
    asyncio.run(write_without_end(where if where.startswith("postgresql:") else Path(where), name))
