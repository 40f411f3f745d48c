"""Old events, rolled up: Parquet files in the store itself, in place of rows.

What has read the files goes on with the rows after the last event that they have. So each event is read once at any
moment: a file is added in one transaction, and the rows that it replaces, which nobody reads any more, are removed
later, few at a time. A copy or a backup of the store has the files, too, and every machine that shares a store reads
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from workbench.errors import NotFound, Unavailable
from workbench.store.base import Reader, Tx
from workbench.store.feed import last_event_id
from workbench.store.queries import beside

SQL = beside(__file__)
EVENTS = 10_000
"""The most events of a file."""
CHARACTERS = 8_000_000
"""About the most text of a file, before it is compressed."""
REMOVED = 500
"""How many rows are removed at once: that takes the writer some milliseconds."""
FILES = 5
"""How many files are read at once."""
COLUMNS = {
    **dict.fromkeys(("id", "at_us"), "BIGINT"),
    **dict.fromkeys(("kind", "actor", "subject", "session", "data"), "VARCHAR"),
}
"""Those of a file, with their types in DuckDB."""

ROW = ("id", "at", "kind", "actor", "subject", "session", "data")
"""The same, as a row has them."""

Events = Sequence[tuple[Any, ...]]
"""The columns of a file, event by event."""


@dataclass(frozen=True, slots=True)
class OldEvents:
    """Events that are to be rolled up.

    Attributes:
        after: up to where events are rolled up before them.
        continued: a smaller file, whose events the new one will have as well.
    """

    events: Events
    after: int
    continued: bytes | None


@dataclass(frozen=True, slots=True)
class EventFile:
    """Events as a file. It is put after, and if it `replaces` something, in the place of, the last one."""

    events: Events
    after: int
    replaces: bool
    parquet: bytes


def last_id(tx: Reader) -> int:
    """The id of the newest event that is rolled up; 0: none is."""
    row = tx.one(SQL.last)
    return int(row["id"]) if row else 0


def require_kept(tx: Reader, cursor: int) -> None:
    """Refuse a cursor after which there were events that have no rows any more. 0 means: from the oldest that has.

    Raises:
        NotFound: ``EVENTS_ROLLED_UP``.
    """
    if 0 < cursor < (last := last_id(tx)):
        raise NotFound(
            "EVENTS_ROLLED_UP",
            f"Events are kept here for keep_events_days, and those up to {last} are rolled up. Go on after {last}, or "
            "from the oldest that is kept, after 0; the view `events` (`workbench sql`) has all of them.",
            after=last,
        )


def events_after(tx: Reader, cursor: int) -> Events:
    """The next rolled up events with a larger id than a cursor, oldest first: those of some files.

    Raises:
        Unavailable: ``ROLLED_UP_DAMAGED``.
    """
    files = _read(tx, cursor, FILES)
    return [event for event in unpack(files) if event[0] > cursor] if files else ()


def parquet_files(tx: Reader) -> list[bytes]:
    """All files, oldest first: about 20 bytes an event.

    Raises:
        Unavailable: ``ROLLED_UP_DAMAGED``.
    """
    return _read(tx, 0, 1 << 40)


def all_events(tx: Reader) -> Iterator[dict[str, Any]]:
    """All rolled up events, oldest first, as rows."""
    cursor = 0
    while found := events_after(tx, cursor):
        yield from (dict(zip(ROW, event, strict=True)) for event in found)
        cursor = found[-1][0]


def next_events(tx: Reader, before: int) -> OldEvents | None:
    """The oldest events with rows from before a time, as many as a file may have; None: there are none.

    The newest event of all keeps its row. A file that is not full is continued, so there are few files however often
    this is done.

    Args:
        before: microseconds UTC.

    Raises:
        Unavailable: ``ROLLED_UP_DAMAGED``.
    """
    last = tx.one(SQL.newest) or {"last_id": 0, "events": EVENTS}
    is_continued = last["events"] < EVENTS
    room, newest = EVENTS - (last["events"] if is_continued else 0), last_event_id(tx)
    rows = tx.tuples(SQL.oldest, after=last["last_id"], limit=room)
    old = takewhile(lambda row: row[1] < before and row[0] < newest, rows)
    events = [*_bounded(old)]
    if not events:
        return None
    continued = _read(tx, last["last_id"] - 1, 1)[0] if is_continued else None
    return OldEvents(events, last["last_id"], continued)


def as_file(old: OldEvents) -> EventFile:
    """Old events as a file, which is read back and compared. Blocks.

    Raises:
        Unavailable: ``ROLLED_UP_DIFFERS``.
    """
    events = [*(unpack([old.continued]) if old.continued else ()), *old.events]
    parquet = pack(events)
    if unpack([parquet]) != events:
        raise Unavailable("ROLLED_UP_DIFFERS", "Old events are not equal to the file that was made of them; they stay.")
    return EventFile(events, old.after, old.continued is not None, parquet)


def put(tx: Tx, file: EventFile) -> bool:
    """Add a file; False: somebody else has done so meanwhile."""
    if last_id(tx) != file.after:
        return False
    (first, first_at, *_), (last, last_at, *_) = file.events[0], file.events[-1]
    if file.replaces:
        tx.run(SQL.remove_file, last_id=file.after)
    values = {"last_id": last, "first_id": first, "first_at": first_at, "last_at": last_at, "events": len(file.events)}
    tx.run(SQL.add, values, sha256=_hash(file.parquet), parquet=file.parquet)
    return True


def remove_rows(tx: Tx) -> int:
    """Remove some rows of events that are rolled up; how many."""
    return tx.run(SQL.remove_rows, limit=REMOVED)


def pack(events: Events) -> bytes:
    """Events as a Parquet file."""
    import duckdb
    import numpy

    values = zip(COLUMNS.items(), zip(*events, strict=True), strict=True)
    arrays = {
        name: numpy.array(column, dtype="int64" if kind == "BIGINT" else object) for (name, kind), column in values
    }
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    with TemporaryDirectory(prefix="workbench-events-") as place, duckdb.connect(config={"threads": "1"}) as db:
        file = Path(place) / "events.parquet"
        db.register("rows", arrays)
        db.execute(f"COPY (SELECT {casts} FROM rows) TO '{_quoted(file)}' (FORMAT parquet, COMPRESSION zstd)")
        return file.read_bytes()


def unpack(parquets: Sequence[bytes]) -> Events:
    """The events of Parquet files, by id."""
    import duckdb

    with TemporaryDirectory(prefix="workbench-events-") as place, duckdb.connect(config={"threads": "1"}) as db:
        names = []
        for number, parquet in enumerate(parquets):
            file = Path(place) / f"{number}.parquet"
            file.write_bytes(parquet)
            names.append(f"'{_quoted(file)}'")
        return db.execute(f"SELECT {', '.join(COLUMNS)} FROM read_parquet([{', '.join(names)}]) ORDER BY id").fetchall()


def _read(tx: Reader, cursor: int, limit: int) -> list[bytes]:
    """Files with events after a cursor, which are as they were written."""
    files = tx.all(SQL.files, cursor=cursor, limit=limit)
    for file in files:
        if _hash(file["parquet"]) != file["sha256"]:
            raise Unavailable(
                "ROLLED_UP_DAMAGED",
                f"The file of old events up to {file['last_id']} is damaged. `workbench restore` brings back a backup.",
            )
    return [file["parquet"] for file in files]


def _bounded(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows up to those that would make a file too large; at least one."""
    left = CHARACTERS
    for row in rows:
        yield row
        left -= len(row[-1])
        if left <= 0:
            return


def _hash(parquet: bytes) -> str:
    return hashlib.sha256(parquet).hexdigest()


def _quoted(file: Path) -> str:
    return str(file).replace("'", "''")
