"""Exports for other programs: rows that are not deleted, as CSV or JSON, without secrets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import BadInput
from workbench.model import Level, Wire, iso
from workbench.ops import Ctx, op
from workbench.rules.secrets.executed import with_masks
from workbench.store import rolled_up
from workbench.store.base import Reader, Row
from workbench.store.queries import Query, beside

SQL = beside(__file__)
LARGEST = 64 * 1024 * 1024
"""The most characters in an export, which is built and sent as a whole."""
PAGE = 100

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that a spreadsheet reads as a formula. An apostrophe is written before it, and before those that
would be taken for one written here."""
JSON_COLUMNS = frozenset(
    {
        *("capabilities", "metadata", "data"),
        *("dependencies", "run", "check", "needs", "no_retry", "result_data", "artifacts"),
    }
)

Resource = Literal["agents", "teams", "contexts", "sessions", "projects", "tasks", "events"]
Format = Literal["csv", "json"]


class Export(Wire):
    """The name, type and content of a file."""

    filename: str
    content_type: str
    content: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """How a resource is exported: a query that continues after `key`, and the columns in order.

    Columns in `masked` are stored as they were given, so secrets in them are masked here.
    """

    query: Query
    key: str
    start: int | str
    columns: tuple[str, ...]
    masked: frozenset[str] = frozenset()


_TIMES = ("created_at", "updated_at")
_SHEETS: Mapping[Resource, Sheet] = {
    "projects": Sheet(SQL.projects, "id", "", ("id", "name", "description", *_TIMES)),
    "sessions": Sheet(SQL.sessions, "id", "", ("id", "project_id", "project", "name", "description", *_TIMES)),
    "teams": Sheet(SQL.teams, "id", "", ("id", "session_id", "session", "name", "description", *_TIMES)),
    "contexts": Sheet(
        SQL.contexts,
        "number",
        0,
        (
            *("id", "project_id", "session_id", "session", "sequence_number", "agent_id"),
            *("title", "content", "metadata", *_TIMES),
        ),
    ),
    "agents": Sheet(
        SQL.agents,
        "id",
        "",
        (
            *("agent_id", "name", "registration_status", "persona_id", "role", "tool", "access_level"),
            *("session_id", "session", "team_id", "team", "worktree", "parent", "capabilities", "client", "address"),
            *("expires_at", "registered_at", "last_heartbeat"),
        ),
    ),
    "tasks": Sheet(
        SQL.tasks,
        "id",
        0,
        (
            *("id", "title", "description", "persona_id", "priority", "dependencies", "parent_task_id", "plan", "name"),
            *("target_worktree", "reserved_for", "run", "check", "done_when", "needs", "max_retries", "lease_seconds"),
            *("context_ref", "metadata", "session_id", "session", "on_failure", "no_retry", "due", "approved"),
            *("status", "assigned_agent_id", "retry_count", "not_before", "progress", "result_data", "artifacts"),
            *("error_message", "evidence", "created_by", "created_at", "started_at", "completed_at"),
        ),
        masked=frozenset({"title", "description", "run", "check", "metadata"}),
    ),
    "events": Sheet(SQL.events, "id", 0, ("id", "at", "kind", "actor", "subject", "session", "data")),
}


@op(allow=Level.OPERATOR, reads=True)
async def export(
    ctx: Ctx,
    resource: Annotated[Resource, Field(description="What to export, all of it.")],
    format: Annotated[Format, Field(description="The form of the text.")] = "json",
) -> Export:
    """Export all rows of a resource as a CSV or JSON file; times are ISO 8601."""
    sheet = _SHEETS[resource]
    content = await ctx.read(lambda tx: _file_text(sheet, format, _records(tx, sheet)))
    day = iso(ctx.store.now())[:10]
    content_type = "text/csv; charset=utf-8" if format == "csv" else "application/json"
    return Export(filename=f"workbench-{resource}-{day}.{format}", content_type=content_type, content=content)


def _records(tx: Reader, sheet: Sheet) -> Iterator[dict[str, Any]]:
    """The rows in order, read in pages so that a large table is never in memory as a whole."""
    after = sheet.start
    if sheet.query is SQL.events:
        yield from (_record(sheet, row) for row in rolled_up.all_events(tx))
        after = rolled_up.last_id(tx)
    while rows := tx.all(sheet.query, after=after, limit=PAGE):
        yield from (_record(sheet, row) for row in rows)
        after = rows[-1][sheet.key]


def _record(sheet: Sheet, row: Row) -> dict[str, Any]:
    values = {column: _plain(column, row[column]) for column in sheet.columns}
    return values | {column: with_masks(values[column]) for column in sheet.masked}


def _plain(column: str, value: Any) -> Any:
    if value is None:
        return None
    if column in JSON_COLUMNS:
        return json.loads(value)
    if column == "approved":
        return bool(value)
    is_time = column.endswith("_at") or column in ("at", "last_heartbeat", "not_before")
    return iso(value) if is_time else value


def _file_text(sheet: Sheet, format: Format, records: Iterator[dict[str, Any]]) -> str:
    out = io.StringIO(newline="")
    lines = _csv(sheet.columns, records) if format == "csv" else _json(records)
    for line in lines:
        out.write(line)
        if out.tell() > LARGEST:
            raise BadInput(
                "TOO_LARGE",
                f"The export would exceed {LARGEST:,} characters. Use `workbench sql`, or read in pages.",
            )
    return out.getvalue()


def _json(records: Iterator[dict[str, Any]]) -> Iterator[str]:
    before = "["
    for record in records:
        yield before + "\n" + json.dumps(record, ensure_ascii=False)
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def _csv(columns: Sequence[str], records: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Lines of RFC 4180, a header first."""
    yield _line(columns)
    for record in records:
        yield _line([_cell(column, record[column]) for column in columns])


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out).writerow(cells)
    return out.getvalue()


def _cell(column: str, value: Any) -> str:
    """A value as text that a spreadsheet does not read as a formula."""
    if value is None:
        return ""
    is_text = isinstance(value, str) and column not in JSON_COLUMNS
    text = value if is_text else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text
