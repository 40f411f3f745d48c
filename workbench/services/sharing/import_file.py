"""Reads the files that `export` writes, CSV or JSON, back into rows; an empty cell is the default of its column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workbench.errors import BadInput
from workbench.model import SECOND, Access, GrantedAccess, Int64, Moment, OnFailure, Registration, Role, TaskState
from workbench.ops import problems_of
from workbench.rules.naming import Description, Name
from workbench.rules.tasks.check import Evidence
from workbench.rules.wire import json_safety
from workbench.services.sharing.contexts import Metadata, Title
from workbench.services.sharing.export import FORMULA, JSON_COLUMNS, LARGEST, Format
from workbench.services.tasks import task

R = TypeVar("R", bound="FileRow")

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Importable = Literal["projects", "sessions", "teams", "agents", "contexts", "tasks"]
MOST_PROBLEMS = 20
"""Problems in one error; a file with the wrong columns has one for each row."""


class FileRow(BaseModel):
    """One row of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class SpaceRow(FileRow):
    """A project, session or team. Its parent is found by its id, or else by its name."""

    id: Id | None = None
    name: Name
    description: Description = ""
    project_id: str | None = None
    project: str | None = None
    session_id: str | None = None
    session: str | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None


class ContextRow(FileRow):
    """A context. Its session is found by its id, or else by its name, and numbers it anew."""

    id: Id | None = None
    project_id: str | None = None
    session_id: str | None = None
    session: str | None = None
    sequence_number: int | None = None
    agent_id: str | None = None
    title: Title = ""
    content: str = ""
    metadata: Metadata = Field(default_factory=dict)
    created_at: Moment | None = None
    updated_at: Moment | None = None


class AgentRow(FileRow):
    """An agent. `worktree`, `client` and `address` are accepted and not used: they are of the machine it was on."""

    agent_id: Annotated[str, Field(min_length=1)]
    name: Name | None = None
    registration_status: Registration = Registration.ASSIGNED
    persona_id: str | None = None
    role: Role = Role.WORKER
    tool: GrantedAccess = GrantedAccess.WRITE
    access_level: Access = Access.SELF_ONLY
    session_id: str | None = None
    session: str | None = None
    team_id: str | None = None
    team: str | None = None
    worktree: str | None = None
    parent: str | None = None
    capabilities: dict[str, Any] = Field(default_factory=dict)
    client: str | None = None
    address: str | None = None
    expires_at: Moment | None = None
    registered_at: Moment | None = None
    last_heartbeat: Moment | None = None


class TaskRow(FileRow):
    """A task. `id` is what other rows of the file call it; here it gets a new one. Without a status it is pending."""

    id: Int64 | None = None
    title: task.Title
    description: task.Description = ""
    persona_id: str
    priority: task.Priority = 500
    dependencies: task.Dependencies = []
    parent_task_id: Int64 | None = None
    plan: Id | None = None
    name: Id | None = None
    target_worktree: str | None = None
    reserved_for: str | None = None
    run: task.Run = None
    check: task.Check = None
    done_when: task.Done = None
    needs: task.Needed = None
    max_retries: task.Retries = None
    lease_seconds: task.LeaseSeconds = None
    context_ref: task.ContextRef = None
    metadata: task.Metadata = Field(default_factory=dict)
    session_id: str | None = None
    session: str | None = None
    on_failure: task.Policy = OnFailure.BLOCK
    no_retry: task.NoRetry = []
    due: task.Due = None
    approved: bool = True
    status: TaskState = TaskState.PENDING
    assigned_agent_id: str | None = None
    retry_count: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    not_before: Moment | None = None
    progress: Annotated[int, Field(ge=0, le=100)] = 0
    result_data: Any = None
    artifacts: list[str] = []
    error_message: Annotated[str | None, Field(max_length=100_000)] = None
    evidence: Evidence | None = None
    created_by: str | None = None
    created_at: Moment | None = None
    started_at: Moment | None = None
    completed_at: Moment | None = None


def rows(model: type[R], format: Format, content: str) -> list[R]:
    """The rows of a file.

    Raises:
        BadInput: ``IMPORT_INVALID``; `details.problems` has row (from 1), field and reason.
    """
    records: list[R] = []
    problems: list[dict[str, Any]] = []
    for number, record in enumerate(_records(format, content.removeprefix("\ufeff")), 1):
        try:
            records.append(model.model_validate(record))
        except ValidationError as error:
            problems += [problem(number, one["field"], one["reason"]) for one in problems_of(error)]
    if problems:
        raise invalid(problems)
    return records


def problem(row: int, field: str, reason: str) -> dict[str, Any]:
    """What is wrong with a row."""
    return {"row": row, "field": field, "reason": reason}


def invalid(problems: Sequence[Mapping[str, Any]]) -> BadInput:
    """The error for a file that cannot be imported."""
    sentences = [f"row {first['row']}: {first['field']}: {first['reason']}" for first in problems[:3]]
    more = [f"{len(problems) - 3} more problems"] if len(problems) > 3 else []
    return BadInput("IMPORT_INVALID", f"{'; '.join([*sentences, *more])}.", problems=list(problems[:MOST_PROBLEMS]))


def micros(at: datetime | None, default: int) -> int:
    """A time of a row in microseconds UTC."""
    return default if at is None else round(at.timestamp() * SECOND)


def _records(format: Format, content: str) -> Iterator[dict[str, Any]]:
    records = _from_csv(content) if format == "csv" else _from_json(content)
    for record in records:
        yield {name: value for name, value in record.items() if value is not None}


def _from_json(content: str) -> Iterator[dict[str, Any]]:
    try:
        records = json_safety.decode(content.encode())
    except ValueError as error:
        raise _unreadable(str(error)) from None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise _unreadable("it is not a list of objects")
    yield from records


def _from_csv(content: str) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(LARGEST)  # by default, it is smaller than a context
    reader = csv.DictReader(io.StringIO(content, newline=""), restkey="", strict=True)
    try:
        for record in reader:
            if None in record.values() or "" in record:
                raise _unreadable(f"line {reader.line_num} has more or fewer cells than the header")
            yield {name: _value(name, cell) for name, cell in record.items()}
    except csv.Error as error:
        raise _unreadable(f"line {reader.line_num} is not CSV: {error}") from None


def _value(column: str, cell: str) -> Any:
    """What `export` wrote as a cell; None for an empty one."""
    if not cell:
        return None
    if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA):
        cell = cell[1:]
    if column not in JSON_COLUMNS:
        return cell
    try:
        return json_safety.decode(cell)
    except ValueError:
        return cell  # a text, where an object is needed, is refused with its row


def _unreadable(why: str) -> BadInput:
    return BadInput("IMPORT_INVALID", f"The file cannot be read: {why}.", problems=[])
