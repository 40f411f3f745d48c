"""Segments: Parquet files of a store's past events, which never change, so that the next first load is faster.

A segment has the events of a fixed range of ids. Its name tells the range, the history it belongs to (a digest of its
first and last event, and of its number of rows) and a digest of its content: a segment of another store, or of this
store before a backup took its place, is not found, and a damaged one is noticed. Several kernels may write at once.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from workbench.store.base import Reader
from workbench.store.queries import beside

SQL = beside(__file__)
SIZE = 65_536
"""The ids in a segment."""
FORMAT = "2"
"""Changes with the columns of a segment."""
ABANDONED_SECONDS = 3_600.0
_NAME = re.compile(r"events-(\d+)-(\d+)-([0-9a-f]{16})-([0-9a-f]{32})\.parquet")
_WORK = ".work-"


@dataclass(frozen=True)
class Segment:
    """A range of ids, both ends included, and the history that its events belong to."""

    low: int
    high: int
    history: str


@dataclass(frozen=True)
class Outline:
    """The events of a store at one moment: its whole segments, and the ids after them."""

    segments: Sequence[Segment]
    tail: tuple[int, int]

    @property
    def last(self) -> int:
        """The id of the last event."""
        return self.tail[1]


def outline(tx: Reader) -> Outline:
    """How the events of a store are divided."""
    found = tx.one(SQL.extent)
    if found is None or found["last"] is None:
        return Outline([], (1, 0))
    first, last = found["first"], found["last"]
    has_gaps = found["count"] != last - first + 1
    starts = range((first - 1) // SIZE * SIZE + 1, last - SIZE + 2, SIZE)
    segments = [segment for low in starts if (segment := _segment(tx, low, first, has_gaps))]
    return Outline(segments, (starts[-1] + SIZE if starts else first, last))


def _segment(tx: Reader, low: int, first: int, has_gaps: bool) -> Segment | None:
    """The segment that begins with an id; None if its range has no events."""
    high = low + SIZE - 1
    ends = tx.tuples(SQL.ends, low=low, high=high)
    if not ends:
        return None
    ((count,),) = tx.tuples(SQL.count, low=low, high=high) if has_gaps else [(high - max(low, first) + 1,)]
    return Segment(low, high, hashlib.sha256(repr((FORMAT, ends, count)).encode()).hexdigest()[:16])


class Segments:
    """The segments in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def find(self, wanted: Sequence[Segment]) -> dict[Segment, Path]:
        """Those that are there and whole. Removes damaged ones, and those of another history."""
        found: dict[Segment, Path] = {}
        for path in sorted(self._directory.glob("events-*.parquet")):
            if not (parts := _NAME.fullmatch(path.name)):
                continue
            segment = Segment(int(parts[1]), int(parts[2]), parts[3])
            if segment in wanted and segment not in found and _digest(path) == parts[4]:
                found[segment] = path
            elif segment not in found:
                with suppress(OSError):
                    path.unlink()
        return found

    def keep(self, segment: Segment, file: Path) -> Path:
        """Add a file as a segment; its path."""
        low, high = f"{segment.low:012}", f"{segment.high:012}"
        path = self._directory / f"events-{low}-{high}-{segment.history}-{_digest(file)}.parquet"
        return file.rename(path)

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """A temporary directory on the same disk. Also removes those that ended processes left.

        Raises:
            OSError: the directory cannot be written to.
        """
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for left in self._directory.glob(f"{_WORK}*"):
            with suppress(OSError):
                if time.time() - left.stat().st_mtime > ABANDONED_SECONDS:
                    shutil.rmtree(left, ignore_errors=True)
        with TemporaryDirectory(prefix=_WORK, dir=self._directory, ignore_cleanup_errors=True) as place:
            yield Path(place)


def _digest(path: Path) -> str:
    """A digest of a file's content; empty if it is no file that can be read."""
    if path.is_symlink() or not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError:
        return ""
