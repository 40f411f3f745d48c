"""What `export` saved of views, as tables that a query reads beside those of the project, with the values they had.

It is history of the project that it was exported from: it stays in its files, and nothing of it comes into the store.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from workbench.analytics import mirrors, views
from workbench.analytics.mirrors import TABLES
from workbench.analytics.replica import NO_EXTENSIONS, attached, detached, insert
from workbench.analytics.views import VIEWS
from workbench.errors import BadInput, Unavailable
from workbench.present.inert import inert_line

if TYPE_CHECKING:
    import duckdb

TIMES = "TIMESTAMPFORMAT '%Y-%m-%dT%H:%M:%S.%fZ'"
FORMATS: Mapping[str, str] = {
    "parquet": "FORMAT parquet, COMPRESSION zstd",
    "csv": f"FORMAT csv, HEADER, {TIMES}",
    "jsonl": f"FORMAT json, {TIMES}",
    "json": f"FORMAT json, ARRAY true, {TIMES}",
}
"""By suffix, how DuckDB writes a file."""
FORMULA = r"^''*[=+\-@\t\r\n]"
"""How a cell begins that a spreadsheet reads as a formula, or that would be taken for one escaped here."""
TEXT = ("VARCHAR", "JSON")
SAVED = (*VIEWS, *(table for table in TABLES if table != "raw_events"))
"""What has a file in an export of everything; the view `events` is the table `raw_events`."""
PAGE = 10_000
"""The most rows that are copied at once."""
LONGEST = 256 << 20
"""The most bytes in a row."""
NAMES_OF_RESOURCES = {"events": {"at": "occurred_at"}}
"""What resources that are not imported call columns of the views of the same names."""

Kinds = Mapping[str, Mapping[str, str]]
"""The columns of each view and table, with their types."""


@dataclass(frozen=True)
class ExportFile:
    """A file of an export; one that is equal has the same content.

    Attributes:
        stamp: its inode, its size and when it was changed, in nanoseconds.
    """

    path: Path
    stamp: tuple[int, ...]

    @property
    def form(self) -> str:
        """One of `FORMATS`."""
        return self.path.suffix.removeprefix(".").lower()


@dataclass(frozen=True)
class Exported:
    """The files of an export, as they are now."""

    files: tuple[ExportFile, ...]


class ExportCatalogue:
    """A catalogue with the tables of an export in the database of a copy: a query may use both.

    Args:
        name: of the catalogue.
        exported: its files.
        database: makes a connection to that database.
    """

    def __init__(self, name: str, exported: Exported, database: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        self._name, self._exported, self._connect = name, exported, database
        self._is_filled = False

    def fill(self) -> None:
        """Read the files, unless that is done: all of them or none.

        Raises:
            BadInput: ``EXPORT_UNKNOWN``, ``EXPORT_DAMAGED``. Unavailable: ``EXPORT_TOO_LARGE``.
        """
        if self._is_filled:
            return
        try:
            with attached(self._connect(), self._name) as db, _reader() as reader:
                for file in self._exported.files:
                    with _readable(file) as readable:
                        _copy(reader, db, readable)
        except BaseException:
            self.close()
            raise
        self._is_filled = True

    def close(self) -> None:
        """Remove the catalogue."""
        with self._connect() as db:
            detached(db, self._name)


def found(place: Path) -> Exported | None:
    """The export at a place: a file, or those of a directory; None: it has none.

    Raises:
        BadInput: ``EXPORT_UNKNOWN``, ``EXPORT_UNSAFE``.
    """
    place = place.resolve()
    if place.exists() and not place.is_dir():
        return Exported((_file(place),))
    by_table: dict[str, Path] = {}
    for path in (place / f"{table}.{form}" for form in FORMATS for table in SAVED):
        if os.path.lexists(path) and (other := by_table.setdefault(path.stem, path)) != path:
            why = f"{place} has {other.name} and {path.name}. Name one of them, or a directory with a single export."
            raise BadInput("EXPORT_UNKNOWN", why)
    return Exported(tuple(map(_file, by_table.values()))) if by_table else None


def tables_in(place: Path) -> Sequence[str]:
    """The views and tables that an export at a place has.

    Raises:
        BadInput: ``EXPORT_UNKNOWN``, ``EXPORT_DAMAGED``, ``EXPORT_UNSAFE``.
    """
    export = found(place)
    with _reader() as reader:
        return [_table_in(reader, file) for file in export.files] if export else []


@dataclass(frozen=True)
class _Readable:
    """A file of an export, and how DuckDB reads it."""

    file: ExportFile
    source: str


def _file(path: Path) -> ExportFile:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise BadInput("EXPORT_UNSAFE", f"{path} is not a regular file, as `export` saves them. Name the file itself.")
    file = ExportFile(path, (found.st_ino, found.st_size, found.st_mtime_ns))
    if file.form not in FORMATS:
        raise BadInput("EXPORT_UNKNOWN", f"{path} is not named {', '.join(f'.{form}' for form in FORMATS)}.")
    return file


@contextmanager
def _reader() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that may read files."""
    import duckdb

    with duckdb.connect(config=NO_EXTENSIONS) as db:
        db.execute("SET TimeZone = 'UTC'")
        yield db


@cache
def _kinds() -> Kinds:
    import duckdb

    with duckdb.connect() as db:
        mirrors.create(db)
        views.create(db)
        return {table: {row[0]: row[1] for row in db.execute(f"DESCRIBE {table}").fetchall()} for table in SAVED}


@contextmanager
def _readable(file: ExportFile) -> Iterator[_Readable]:
    """A file under a name that DuckDB takes for a name, not for a pattern or an address.

    Raises:
        BadInput: ``EXPORT_DAMAGED``. Unavailable: ``EXPORT_TOO_LARGE``.
    """
    import duckdb

    with TemporaryDirectory(prefix="workbench-exported-") as scratch:
        link = Path(scratch) / f"rows.{file.form}"
        link.symlink_to(file.path)
        try:
            yield _Readable(file, _source(file, str(link).replace("'", "''")))
        except (duckdb.OutOfMemoryException, MemoryError):
            raise Unavailable("EXPORT_TOO_LARGE", f"{file.path} does not fit into memory. Name single views.") from None
        except (duckdb.Error, csv.Error, UnicodeError, OSError) as error:
            raise _damaged(file, str(error).replace(str(link), file.path.name)) from None


def _source(file: ExportFile, link: str) -> str:
    match file.form:
        case "parquet":
            return f"read_parquet('{link}', hive_partitioning = false)"
        case "csv":
            columns = ", ".join(f"'{name}': 'VARCHAR'" for name in _header(file))
            return (
                f"read_csv('{link}', auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
                f"nullstr = '', allow_quoted_nulls = false, max_line_size = {LONGEST}, columns = {{{columns}}})"
            )
    layout = "newline_delimited" if file.form == "jsonl" else "array"
    return f"read_json_objects('{link}', format = '{layout}', maximum_object_size = {LONGEST})"


def _header(file: ExportFile) -> Sequence[str]:
    """The names of the columns of a CSV file."""
    with file.path.open(encoding="utf-8-sig", newline="") as lines:
        header = next(csv.reader(lines), [])
    if not header or len({*header}) != len(header) or not all(name.isidentifier() for name in header):
        raise _damaged(file, "its first line does not name its columns")
    return header


def _columns(reader: duckdb.DuckDBPyConnection, readable: _Readable) -> Sequence[str]:
    """The names of the columns of a file; of JSON without rows there are none."""
    file = readable.file
    _require_end(file)
    if file.form in ("csv", "parquet"):
        return [row[0] for row in reader.execute(f"DESCRIBE SELECT * FROM {readable.source}").fetchall()]
    keys = reader.execute(f"SELECT DISTINCT json_type(json), json_keys(json) FROM {readable.source} LIMIT 2").fetchall()
    if not keys:
        return []
    kind, names = keys[0]
    if len(keys) > 1 or kind != "OBJECT" or len({*names}) != len(names):
        raise _damaged(file, "its rows do not have the same columns")
    return [str(name) for name in names]


def _require_end(file: ExportFile) -> None:
    """Refuse a file that was cut, also where DuckDB takes what is left for a whole one.

    Raises:
        BadInput: ``EXPORT_DAMAGED``.
    """
    with file.path.open("rb") as content:
        content.seek(-min(len(b"]\r\n"), file.stamp[1]), os.SEEK_END)
        end = content.read()
    is_whole = {"csv": end[-1:] == b"\n", "jsonl": end[-1:] in (b"\n", b""), "json": end.rstrip()[-1:] == b"]"}
    if not is_whole.get(file.form, True):
        raise _damaged(file, "its last line is not whole")


def _table_in(reader: duckdb.DuckDBPyConnection, file: ExportFile) -> str:
    with _readable(file) as readable:
        return _table(readable, _columns(reader, readable))


def _table(readable: _Readable, columns: Sequence[str]) -> str:
    """The view or table that a file has: the one that it is named after, or else the one that has its columns."""
    path, kinds = readable.file.path, _kinds()
    own = kinds.get(path.stem, {})
    unknown = {*_renamed(path.stem, columns)} - {*own}
    if own and not unknown:
        return path.stem
    for table, known in kinds.items():
        if {*_renamed(table, columns)} == {*known}:
            return table
    if not own:
        raise BadInput(
            "EXPORT_UNKNOWN",
            f"{path} is not what `export` saves of a view: no view has just its columns. `workbench import` reads "
            "projects, tasks and so on; a query with --files reads any file.",
        )
    raise BadInput(
        "EXPORT_UNKNOWN",
        f"{path} is not what `export` saves of the view {path.stem}, which has no column "
        f"{inert_line(', '.join(sorted(unknown)[:3]))}. If a newer Workbench saved it, update this one. If it is of a "
        f"resource, `workbench import {path.stem}` reads it.",
    )


def _renamed(table: str, columns: Sequence[str]) -> Sequence[str]:
    others = NAMES_OF_RESOURCES.get(table, {})
    return [others.get(column, column) for column in columns]


def _copy(reader: duckdb.DuckDBPyConnection, db: duckdb.DuckDBPyConnection, readable: _Readable) -> None:
    """Create the table of a file, with its rows; a column that an older Workbench did not save is null."""
    columns = _columns(reader, readable)
    table = _table(readable, columns)
    known = _kinds()[table]
    db.execute(f'CREATE TABLE "{table}" ({", ".join(f"{name} {kind}" for name, kind in known.items())})')
    there = dict(zip(_renamed(table, columns), columns, strict=True))
    texts = (
        _checked(name, _text(readable.file.form, there[name], kind), kind) if name in there else "NULL"
        for name, kind in known.items()
    )
    rows = reader.execute(f"SELECT {', '.join(texts)} FROM {readable.source}")
    while page := rows.fetchmany(PAGE):
        insert(db, table, known, page)


def _text(form: str, column: str, kind: str) -> str:
    """The text of a value of a file, in SQL."""
    if form == "parquet":
        return f'CAST("{column}" AS VARCHAR)'
    if form == "csv":
        escaped = f"regexp_matches(\"{column}\", '{FORMULA.replace('*', '+', 1)}')"
        return f'CASE WHEN {escaped} THEN "{column}"[2:] ELSE "{column}" END' if kind in TEXT else f'"{column}"'
    path = f"'$.\"{column}\"'"
    if kind == "JSON" or kind.endswith("[]"):
        return f"NULLIF(CAST(json_extract(json, {path}) AS VARCHAR), 'null')"
    return f"json_extract_string(json, {path})"


def _checked(column: str, text: str, kind: str) -> str:
    """The same text, or DuckDB's error if it is not how a value of this type is saved."""
    if kind == "VARCHAR":
        return text
    value = f"TRY_CAST({text} AS {kind})"
    fits = {
        "BIGINT": f"CAST({value} AS VARCHAR) = {text}",
        "DOUBLE": f"(isfinite({value}) OR regexp_full_match({text}, '-?(inf|infinity)|nan', 'i'))",
    }.get(kind, f"{value} IS NOT NULL")
    wrong = f"error('the column {column} has ' || left({text}, 40) || ', which is no {kind}')"
    return f"CASE WHEN {text} IS NULL OR {fits} THEN {text} ELSE {wrong} END"


def _damaged(file: ExportFile, reason: str) -> BadInput:
    first = reason.strip().partition("\n")[0]
    why = inert_line(first.partition(" Error: ")[2] or first).removesuffix(".")
    return BadInput("EXPORT_DAMAGED", f"{file.path} is not as `export` saved it: {why}. Use another copy of it.")
