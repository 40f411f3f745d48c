"""Fills an empty copy of a large store: segments that are there, the other events and all tables through children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.analytics.bulk.children import Children, ExtractionFailed, Job
from workbench.analytics.bulk.segments import Outline, Segment, Segments
from workbench.analytics.mirrors import EVENT_COLUMNS, MIRRORS, NUMBERED, TABLES
from workbench.store.queries import Query, beside

if TYPE_CHECKING:
    import duckdb

SQL = beside(__file__)
SMALLEST = 20_000
"""With fewer events, starting children takes longer than reading in this process."""


class Load:
    """One load of the events and tables of a SQLite store; `stop` ends it from another thread.

    A table may be newer than the last event of the outline: the rows of those that later events are about are read
    again with these.
    """

    def __init__(self, database: Path, found: Outline) -> None:
        self._database = database
        self._outline = found
        self._segments = Segments(database.parent / "analytics")
        self._children: Children | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Let `into` fail soon."""
        self._is_stopped = True
        if self._children is not None:
            self._children.stop()

    def into(self, db: duckdb.DuckDBPyConnection) -> None:
        """Insert everything into the empty tables of a database.

        Raises:
            ExtractionFailed: what is missing could not be copied, or the load was stopped; some tables are filled.
        """
        import duckdb

        try:
            with self._segments.workplace() as place:
                self._fill(db, place)
        except (OSError, duckdb.Error) as error:
            raise ExtractionFailed(str(error)) from error

    def _fill(self, db: duckdb.DuckDBPyConnection, place: Path) -> None:
        stored = self._segments.find(self._outline.segments)
        events = list(self._events(stored, place))
        there = list(takewhile(lambda piece: piece.job is None, events))  # inserted while the children begin
        pieces = [*there, *_tables(place), *events[len(there) :]]
        children = self._children = Children(self._database, [piece.job for piece in pieces if piece.job])
        if self._is_stopped:
            raise ExtractionFailed("The load was stopped.")
        with children.working():
            import numpy  # noqa: F401 (updates need it: it is imported while the children work)

            copied = iter(children.copied)
            for piece in pieces:
                if piece.job is not None:
                    next(copied).result()
                # One file at a time: DuckDB would hold much of several at once.
                db.execute(f"INSERT INTO {piece.table} SELECT * FROM read_parquet(?)", [str(piece.path)])
                if piece.job is not None and piece.segment is not None:
                    self._segments.keep(piece.segment, piece.path)

    def _events(self, stored: Mapping[Segment, Path], place: Path) -> Iterator[_Piece]:
        for segment in self._outline.segments:
            if segment in stored:
                yield _Piece("raw_events", stored[segment])
            else:
                yield _events_between(segment.low, segment.high, place, segment)
        yield _events_between(*self._outline.tail, place)


@dataclass(frozen=True)
class _Piece:
    """Some rows of a table: in a file that is there, or that a job writes."""

    table: str
    path: Path
    job: Job | None = None
    segment: Segment | None = None


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
