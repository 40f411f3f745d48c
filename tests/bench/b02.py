"""B2: claim and complete through the door, beside the same statements run by bare `sqlite3`."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from tests.bench.child import Child
from tests.bench.project import Seed, drain, identify, opened, prepare, scratch
from tests.bench.rows import SHORT, Row, Samples, at_least, take_turns
from workbench.store.base import Tx, Values
from workbench.store.queries import Query
from workbench.store.sqlite import SQL

T = TypeVar("T")

AGENTS = 64
TRANSACTION = 64
"""Changes in one transaction of the raw loop."""

Statement = tuple[str, dict[str, Any]]


class Recorder:
    """A transaction that notes every statement with its values before it hands it on."""

    def __init__(self, tx: Tx, notes: list[Statement]) -> None:
        self._tx = tx
        self._notes = notes
        self.now, self.actor = tx.now, tx.actor

    def one(self, query: Query, values: Values | None = None, /, **more: Any) -> Any:
        return self._tx.one(query, self._noted(query, {**(values or {}), **more}))

    def all(self, query: Query, values: Values | None = None, /, **more: Any) -> Any:
        return self._tx.all(query, self._noted(query, {**(values or {}), **more}))

    def tuples(self, query: Query, values: Values | None = None, /, **more: Any) -> Any:
        return self._tx.tuples(query, self._noted(query, {**(values or {}), **more}))

    def run(self, query: Query, values: Values | None = None, /, **more: Any) -> int:
        return self._tx.run(query, self._noted(query, {**(values or {}), **more}))

    def many(self, query: Query, rows: Iterable[Values]) -> None:
        self._tx.many(query, [self._noted(query, values) for values in rows])

    def emit(self, kind: str, subject: str, /, **data: Any) -> None:
        values = {"at": self.now, "kind": kind, "actor": self.actor, "subject": subject, "session": None}
        self._noted(SQL.add_event, values | {"data": str(data)})
        self._tx.emit(kind, subject, **data)

    def _noted(self, query: Query, values: Values) -> Values:
        self._notes.append((query.sqlite, dict(values)))
        return values


async def record(root: Path, seed: Seed) -> list[list[Statement]]:
    """What the store is asked while all tasks are claimed and completed: the statements of each change."""
    changes: list[list[Statement]] = []
    async with opened(root) as workbench:
        write = workbench.store.write

        def noted(change: Callable[[Tx], T], **more: Any) -> Any:
            def run(tx: Tx) -> T:
                changes.append([])
                return change(Recorder(tx, changes[-1]))

            return write(run, **more)

        workbench.store.write = noted  # type: ignore[method-assign]
        await drain(workbench, await identify(workbench, seed.tokens))
    return changes


def replayed(seed: Seed, root: Path, changes: list[list[Statement]], tasks: int) -> float:
    """Tasks a second, when the same statements are run on the same data with nothing around them."""
    db = sqlite3.connect(seed.copy(root) / ".aiswarm" / "coordination.db", isolation_level=None, cached_statements=256)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -65536"):
        db.execute(f"PRAGMA {pragma}")
    started = time.perf_counter()
    for first in range(0, len(changes), TRANSACTION):
        db.execute("BEGIN IMMEDIATE")
        for change in changes[first : first + TRANSACTION]:
            for statement, values in change:
                db.execute(statement, values).fetchall()
        db.execute("COMMIT")
    seconds = time.perf_counter() - started
    done = db.execute("SELECT COUNT(*) FROM task_status WHERE status = 'completed'").fetchone()[0]
    db.close()
    assert done == tasks, f"the replay completed {done} of {tasks} tasks"
    return tasks / seconds


def run(rounds: int, quick: bool) -> Mapping[str, Samples]:
    """Tasks claimed and completed a second. Ours runs in a process without what was recorded, as for its users."""
    tasks = 300 if quick else 4_000
    with scratch() as directory, ExitStack() as stack:
        seed = prepare(directory / "seed", agents=AGENTS, tasks=tasks)
        changes = asyncio.run(record(seed.copy(directory / "record"), seed))
        ours = stack.enter_context(Child("b01", str(seed.root), str(directory / "ours")))
        rates = take_turns(
            rounds * SHORT,
            ours=lambda: float(ours.ask(list(seed.tokens))),
            raw=lambda: replayed(seed, directory / "raw", changes, tasks),
        )
    statements = sum(map(len, changes)) / tasks
    return {"": Samples(rates["ours"], rates["raw"], "tasks/s", note=f"{statements:.0f} statements a task")}


ROW = Row(
    "B2",
    "claim + complete, 64 agents",
    "the same statements by sqlite3, 64 changes a transaction",
    {"": at_least(0.4)},
    run,
)
