"""Fills an empty copy of a large store: segments that are there, the other events and all tables through children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.analytics.bulk.children import Children, ExtractionFailed, Job
from workbench.analytics.bulk.niceness import run_nicely
from workbench.analytics.bulk.segments import Outline, Segment, Segments, outline
from workbench.analytics.changes import Position, after_event
from workbench.analytics.mirrors import EVENT_COLUMNS, MIRRORS, NUMBERED, TABLES
from workbench.store.base import Reader
from workbench.store.queries import Query, beside

if TYPE_CHECKING:
    import duckdb

SQL = beside(__file__)
SMALLEST = 20_000
"""With fewer events, starting children takes longer than reading in this process."""


class Load:
    """One load of the events and tables of a SQLite store; `stop` ends it from another thread.

    A table may be newer than the last event of the load: the rows of those that later events are about are read again
    with these.
    """

    def __init__(self, database: Path) -> None:
        self._segments = Segments(database.parent / "analytics")
        self._ends = ExitStack()
        self._pieces: Sequence[tuple[_Piece, Future[int] | None]] = ()
        self._children = Children(database)

    def plan(self, tx: Reader) -> Position:
        """Let the children begin with what is missing; the position of what will be loaded.

        Raises:
            ExtractionFailed: no file can be written, or the load was stopped.
        """
        found = outline(tx)
        with ExitStack() as ends:
            try:
                place = ends.enter_context(self._segments.workplace())
            except OSError as error:
                raise ExtractionFailed(str(error)) from error
            events = list(_events(found, self._segments.find(found.segments), place))
            there = list(takewhile(lambda piece: piece.job is None, events))  # inserted while the children begin
            pieces = [*there, *_tables(place), *events[len(there) :]]
            self._pieces = [(piece, self._children.copy(piece.job) if piece.job else None) for piece in pieces]
            self._ends.push(ends.pop_all())
        return after_event(tx, found.last)

    def into(self, db: duckdb.DuckDBPyConnection) -> None:
        """Insert everything into the empty tables of a database.

        Raises:
            ExtractionFailed: what is missing could not be copied, or the load was stopped; some tables are filled.
        """
        import duckdb
        import numpy  # noqa: F401 (updates need it: it is imported while the children work)

        try:
            db.execute("SET threads = 1")  # the children need the processors, and a file is not read by several threads
            run_nicely(partial(self._insert, db))
            db.execute("RESET threads")
        except (OSError, duckdb.Error) as error:
            raise ExtractionFailed(str(error)) from error
        finally:
            self._children.close()
            self._ends.close()

    def stop(self) -> None:
        """Let `into` fail soon; no file is left."""
        self._children.stop()
        self._ends.close()

    def _insert(self, db: duckdb.DuckDBPyConnection) -> None:
        for piece, copied in self._pieces:
            if copied is not None:
                copied.result()
            # One file at a time: DuckDB would hold much of several at once.
            db.execute(f"INSERT INTO {piece.table} SELECT * FROM read_parquet(?)", [str(piece.path)])
            if copied is not None and piece.segment is not None:
                self._segments.keep(piece.segment, piece.path)


@dataclass(frozen=True)
class _Piece:
    """Some rows of a table: in a file that is there, or that a job writes."""

    table: str
    path: Path
    job: Job | None = None
    segment: Segment | None = None


def _events(found: Outline, stored: Mapping[Segment, Path], place: Path) -> Iterator[_Piece]:
    for segment in found.segments:
        if segment in stored:
            yield _Piece("raw_events", stored[segment])
        else:
            yield _events_between(segment.low, segment.high, place, segment)
    yield _events_between(*found.tail, place)


def _tables(place: Path) -> Iterator[_Piece]:
    whole = {mirror.table: _filled(mirror.rows, keys="NULL") for mirror in MIRRORS}
    numbered = {mirror.table: _filled(mirror.rows, after=0, keys="'[]'") for mirror in NUMBERED}
    for table, query in (whole | numbered).items():
        path = place / f"{table}.parquet"
        yield _Piece(table, path, Job(query, TABLES[table], path))


def _events_between(low: int, high: int, place: Path, segment: Segment | None = None) -> _Piece:
    path = place / f"events-{low}.parquet"
    return _Piece("raw_events", path, Job(_filled(SQL.events, low=low, high=high), EVENT_COLUMNS, path), segment)


def _filled(query: Query, **values: int | str) -> str:
    """A query with expressions in place of its parameters."""
    text = query.sqlite
    for name, value in values.items():
        text = text.replace(f":{name}", str(value))
    return text
