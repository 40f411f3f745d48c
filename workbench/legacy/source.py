"""Reads the old server's database leniently, and never writes to it.

Its layout was changed by hand: columns may be missing or unknown, the table `contexts` may be missing, and any
value may be NULL or of a wrong type.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from workbench.errors import BadInput, NotFound, Unavailable, WorkbenchError
from workbench.model import SECOND
from workbench.rules.wire import json_safety
from workbench.store.queries import Query, beside

SQL = beside(__file__)

_QUERIES = {
    "projects": SQL.projects,
    "sessions": SQL.sessions,
    "teams": SQL.teams,
    "agents": SQL.agents,
    "contexts": SQL.contexts,
}
TABLES = tuple(_QUERIES)
"""The tables that are imported, each after those it refers to."""
LARGEST_NUMBER = 2**53
"""The largest sequence number that is kept: JavaScript cannot read larger ones, and counting goes on after it."""

_TIMES = frozenset({"created_at", "updated_at", "deleted_at"})
_COMMON = frozenset({"id", "name", "description"}) | _TIMES
_REGISTRATION = frozenset(
    {"registration_status", "selected_tool", "assigned_agent_id", "connection_id", "capabilities"}
)
_KNOWN = {
    "projects": _COMMON,
    "sessions": _COMMON | {"project_id"},
    "teams": _COMMON | {"session_id"},
    "agents": _COMMON | _REGISTRATION | {"session_id", "team_id", "status", "last_active"},
    "contexts": _TIMES
    | {"id", "title", "content", "project_id", "session_id", "agent_id", "sequence_number", "metadata"},
}


@dataclass(frozen=True)
class Old:
    """One row of the legacy database."""

    table: str
    row: Mapping[str, Any] = field(repr=False)

    @cached_property
    def id(self) -> str | None:
        """Its id; None for NULL, which SQLite accepts as a primary key."""
        return self.ref("id")

    @cached_property
    def created(self) -> int | None:
        """When it was created, if that is known."""
        return self.time("created_at")

    @property
    def is_deleted(self) -> bool:
        """Whether it is deleted: for the old server, anything but NULL meant deleted."""
        return self.row.get("deleted_at") is not None

    @property
    def waits(self) -> bool:
        """Whether it is an agent whose registration was not decided.

        The status alone does not show it: older agents got 'pending' as the default of a new column.
        """
        asked = self.text("id").startswith("pending_") or self.row.get("selected_tool") == "register"
        return self.row.get("registration_status") == "pending" and asked and self.ref("assigned_agent_id") is None

    @property
    def number(self) -> int | None:
        """The sequence number, if it is valid."""
        number = self.row.get("sequence_number")
        return number if isinstance(number, int) and 0 < number <= LARGEST_NUMBER else None

    @property
    def unreadable_times(self) -> list[str]:
        """Columns for times that hold something else."""
        columns = sorted(_TIMES & self.row.keys())
        return [c for c in columns if self.row[c] is not None and self.time(c) is None]

    def text(self, column: str) -> str:
        """A text; '' for NULL. Zero characters, which PostgreSQL does not take, are replaced."""
        value = self.row.get(column)
        if value is None:
            return ""
        read = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        return read.replace("\0", "\N{REPLACEMENT CHARACTER}")

    def ref(self, column: str) -> str | None:
        """The id of another row; None for NULL and for nothing but spaces."""
        text = self.text(column)
        return text if text.strip() else None

    def time(self, column: str) -> int | None:
        """Microseconds UTC; None for NULL and for what is not a time."""
        return parse_time(self.row.get(column))

    def object(self, column: str) -> str:
        """A JSON object; any other value is kept in one, under `legacy`."""
        text = self.text(column)
        if not text.strip():
            return "{}"
        try:
            value = json.loads(text)
            json_safety.check(value)
        except (ValueError, RecursionError):
            value = text
        return json.dumps(value if isinstance(value, dict) else {"legacy": value})


@dataclass(frozen=True)
class Legacy:
    """The rows of a legacy database that can be imported, and notes for the operator about the rest."""

    name: str
    rows: Mapping[str, list[Old]]
    notes: list[str]

    @property
    def found(self) -> dict[str, int]:
        """How many rows each table has."""
        return {table: len(self.rows[table]) for table in TABLES}


def read(source: Path) -> Legacy:
    """Read a whole legacy database, as of one moment.

    Raises:
        NotFound: ``LEGACY_NOT_FOUND``. BadInput: ``NOT_A_DATABASE``, ``NOT_LEGACY``.
        Unavailable: ``LEGACY_CORRUPT``, ``LEGACY_UNREADABLE``.
    """
    if not source.is_file():
        raise NotFound("LEGACY_NOT_FOUND", f"There is no file {source}. Give the path of the old server's database.")
    try:
        with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)) as db:
            db.row_factory = sqlite3.Row
            db.text_factory = lambda raw: raw.decode("utf-8", "replace")
            db.execute("BEGIN")
            return _read(db, source)
    except sqlite3.Error as error:
        raise _coded(error, source) from error


def _read(db: sqlite3.Connection, source: Path) -> Legacy:
    found = {row["name"] for row in db.execute(SQL.tables.sqlite)}
    if missing := set(TABLES) - {"contexts"} - found:
        raise _not_legacy(source, f"it has no table {', '.join(sorted(missing))}")
    damage = db.execute(SQL.damage.sqlite).fetchone()[0]
    if damage != "ok":
        raise _corrupt(source, damage)
    tables = {name: _table(db, name, query) if name in found else _NONE for name, query in _QUERIES.items()}
    _check_columns(source, tables)
    tools = _table(db, "agent_tools", SQL.agent_tools) if "agent_tools" in found else _NONE
    notes = [*_left_out(found, tables), *_switched_off(tools.rows)]
    return Legacy(source.name, {name: table.rows for name, table in tables.items()}, notes)


@dataclass(frozen=True)
class _Table:
    columns: frozenset[str]
    rows: list[Old]


_NONE = _Table(frozenset({"id"}), [])


def _table(db: sqlite3.Connection, name: str, query: Query) -> _Table:
    cursor = db.execute(query.sqlite)
    columns = [column.lower() for column, *_ in cursor.description]
    return _Table(frozenset(columns), [Old(name, dict(zip(columns, row, strict=True))) for row in cursor])


def _check_columns(source: Path, tables: Mapping[str, _Table]) -> None:
    for name, table in tables.items():
        if "id" not in table.columns:
            raise _not_legacy(source, f"its table {name} has no column id")
        if "token_hash" in table.columns:
            raise _not_legacy(source, "it is a store of Workbench already")


def _left_out(found: set[str], tables: Mapping[str, _Table]) -> list[str]:
    """A note for each table and column that is not imported."""
    unknown = sorted(found - set(TABLES) - {"agent_tools"})
    for name, table in tables.items():
        unknown += [f"{name}.{column}" for column in sorted(table.columns - _KNOWN[name])]
    return [f"{name} is not imported: the old server did not use it." for name in unknown]


def _switched_off(tools: list[Old]) -> list[str]:
    """A note for each disabled tool: here every tool is enabled at first."""
    off = [tool.text("id") for tool in tools if tool.row.get("enabled") == 0]
    return [f"The tool {tool} was disabled. Disable it here with update_agent_tool." for tool in off]


def _coded(error: sqlite3.Error, source: Path) -> WorkbenchError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return BadInput(
            "NOT_A_DATABASE", f"{source} is not an SQLite database. Give the path of the old server's database."
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return _corrupt(source, str(error))
    return Unavailable(
        "LEGACY_UNREADABLE",
        f"{source} cannot be read: {error}. End the program that has it open, or if that crashed, open it once with "
        "`sqlite3`; then import again.",
        reason=str(error),
    )


def _corrupt(source: Path, damage: str) -> WorkbenchError:
    return Unavailable(
        "LEGACY_CORRUPT",
        f"{source} is damaged: {damage}. Nothing was changed. Import a backup, or what "
        "`sqlite3 damaged.db .recover | sqlite3 sound.db` recovers.",
        reason=damage,
    )


def _not_legacy(source: Path, why: str) -> WorkbenchError:
    return BadInput(
        "NOT_LEGACY", f"{source} is not a database of the old server: {why}. Give the path of that one.", reason=why
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = -62_135_596_800 * SECOND
_LAST = 253_402_300_799 * SECOND  # leaves the last second for rounding
_BEFORE_ZONE = re.compile(r"\s+(?=[+-]\d)")
_NAMED_ZONE = re.compile(r"\s*(?:UTC|GMT|Z)$", re.IGNORECASE)


def parse_time(value: object) -> int | None:
    """A time in microseconds UTC, or None if it is invalid or beyond what `model.iso` can show (years 1 to 9999).

    Accepts ISO 8601 text with a ``T`` or a space, any fraction, with or without a zone, and numbers since the epoch:
    seconds, or milliseconds or microseconds if they are too large for seconds. Text without a zone is UTC, as written
    by SQLite's CURRENT_TIMESTAMP and `datetime.utcnow`.
    """
    at = None
    if isinstance(value, str):
        at = _from_text(value.strip())
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        at = _from_number(value)
    return at if at is not None and _FIRST <= at <= _LAST else None


def _from_text(text: str) -> int | None:
    try:
        read = datetime.fromisoformat(_BEFORE_ZONE.sub("", _NAMED_ZONE.sub("Z", text)))
    except ValueError:
        return None
    aware = read if read.tzinfo else read.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _from_number(number: float) -> int:
    for scale, least in ((1, 1e14), (1_000, 1e11)):
        if abs(number) >= least:
            return int(number * scale)
    return int(number * SECOND)
