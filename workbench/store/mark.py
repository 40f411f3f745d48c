"""The mark of a store: the newest event that it had acknowledged, noted in a file beside it.

SQLite reads a damaged log up to the damage, and takes an empty file for a new database. The mark shows that more had
been acknowledged. It is written at most once a second, and when the store is closed: the loss of changes without an
event, or acknowledged in the last second before a crash, is not noticed.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from workbench.errors import Unavailable
from workbench.state.root import OpenedState
from workbench.store.base import Row
from workbench.store.queries import beside
from workbench.system import atomic_file

SQL = beside(__file__)
SECONDS = 1.0
"""How far the mark may lag behind the store."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreMark:
    """When a store was created, and its newest event with its time; 0 if there is none."""

    created: int
    event: int
    at: int


def mark_file(store: Path) -> Path:
    """The file of a store's mark. Its name sorts before those of the store, so that a copy in order copies it first."""
    return store.with_suffix(".acknowledged")


def read_mark(store: Path) -> StoreMark | None:
    """The mark of a store; None if it is missing or cannot be read."""
    try:
        raw = json.loads(atomic_file.read(mark_file(store), private=True))
        mark = StoreMark(**raw)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return mark if all(type(value) is int for value in (mark.created, mark.event, mark.at)) else None


def mark_of(db: sqlite3.Connection) -> StoreMark:
    """The mark that fits a database as it is now."""
    return StoreMark(*db.execute(SQL.newest.sqlite).fetchone())


def lacking(db: sqlite3.Connection, mark: StoreMark) -> str | None:
    """How a database falls short of its mark, in a sentence; None if it does not."""
    tables = {name for (name,) in db.execute(SQL.tables.sqlite)}
    if not {"events", "migration_history"} <= tables:
        return "It is empty."
    (created, newest, at) = db.execute(SQL.compared.sqlite, {"event": mark.event}).fetchone()
    if created != mark.created:
        return "It is the store of another project."
    if newest < mark.event:
        return f"Its last event is {newest}, but event {mark.event} had been acknowledged."
    if at not in (None, mark.at):  # None: somebody pruned events
        return f"Its event {mark.event} is not the one that had been acknowledged."
    return None


class MarkKeeper:
    """Writes the mark of an open store; only the thread of its writer uses it."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._state = OpenedState(store.parent)
        self._mark: StoreMark | None = None
        self._due: float | None = None

    def begin(self, mark: StoreMark) -> None:
        """Write the mark of the opened store, unless the file has it already."""
        self._mark = mark
        if read_mark(self._store) != mark:
            self.write()

    @property
    def seconds_left(self) -> float | None:
        """How long the mark may still wait; None if it is up to date."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def note(self, events: Sequence[Row]) -> None:
        """Note the events of a commit that is durable."""
        if events and self._mark is not None:
            self._mark = StoreMark(self._mark.created, events[-1]["id"], events[-1]["at"])
            if self._due is None:
                self._due = time.monotonic() + SECONDS

    def write(self) -> None:
        """Write the mark, unless another process has written a newer one, or the store was moved or removed."""
        self._due = None
        if self._state.has_moved():
            return
        written, mark = read_mark(self._store), self._mark
        if mark is None or (written and written.created == mark.created and written.event > mark.event):
            return
        try:
            atomic_file.replace(mark_file(self._store), json.dumps(asdict(mark)), mode=0o600)
        except Unavailable as error:  # the store has the same disk, and says so itself
            log.warning("the mark of the store is not up to date: %s", error.message)
