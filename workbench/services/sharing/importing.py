"""Imports what `export` wrote: rows that are not here yet are added, all of them or none. Nothing here is changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from workbench.errors import BadInput, NotFound, WorkbenchError
from workbench.model import Level, Registration, Wire, uuid7
from workbench.ops import Ctx, op
from workbench.rules import access
from workbench.services.agents import grants
from workbench.services.agents.grants import Grant
from workbench.services.agents.rows import agent_by_uid
from workbench.services.sharing import contexts, import_file, imported_tasks
from workbench.services.sharing.contexts import ContextStamp, NewContext
from workbench.services.sharing.export import Format
from workbench.services.sharing.import_file import AgentRow, ContextRow, FileRow, Importable, SpaceRow, TaskRow, micros
from workbench.services.spaces import space
from workbench.services.spaces.projects import PROJECT, require_project
from workbench.services.spaces.sessions import SESSION, require_session
from workbench.services.spaces.space import SpaceKind
from workbench.services.spaces.teams import TEAM, require_team
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

R = TypeVar("R", bound=FileRow)
M = TypeVar("M", bound=Wire)


class ImportedRecords(Wire):
    """What was added, or with `dry_run` would be: names, ids or titles. `present` rows are here already."""

    resource: Importable
    dry_run: bool
    added: list[str]
    present: int
    notes: list[str]


class _DryRunError(Exception):
    """Rolls a dry run back, with its result."""

    def __init__(self, result: ImportedRecords) -> None:
        super().__init__(result)
        self.result = result


@dataclass(slots=True)
class _Import:
    """An import within its transaction: the records it has added, and notes for the user."""

    tx: Tx
    ctx: Ctx
    added: list[str] = field(default_factory=list)
    present: int = 0
    authorless: int = 0
    unplaced: int = 0
    pending: int = 0
    told: list[str] = field(default_factory=list)

    def remarks(self) -> list[str]:
        """Sentences for the user."""
        remarks = [
            ("Contexts whose author is not here: {}. To keep their authors, import the agents first.", self.authorless),
            (
                "Agents whose session or team is not here: {}. To keep it, import those first.",
                self.unplaced,
            ),
            ("Registrations that waited for a decision, and are left out: {}.", self.pending),
        ]
        return [*(sentence.format(number) for sentence, number in remarks if number), *self.told]


@dataclass(frozen=True, slots=True)
class _Importer(Generic[R]):
    """How the rows of a file are imported."""

    model: type[R]
    add_all: Callable[[_Import, Sequence[R]], None]


@op(allow=Level.OPERATOR, tool=False, command="import")
async def import_records(
    ctx: Ctx,
    resource: Annotated[Importable, Field(description="What the rows are.")],
    content: Annotated[str, Field(description="What `export` wrote.")],
    format: Annotated[Format, Field(description="The form of the text.")] = "json",
    dry_run: Annotated[bool, Field(description="Change nothing; only report what would be added.")] = True,
) -> ImportedRecords:
    """Add the rows of an exported file that are not here yet: all of them, or none, with every problem by its row.

    Projects, sessions and teams are known by id or name, agents by their agent_id, contexts by id, tasks by plan and
    name or by when they were created. Agents come without tokens (issue_token gives them new ones), and open tasks are
    pending.
    """
    importer = _IMPORTERS[resource]
    rows = await asyncio.to_thread(import_file.rows, importer.model, format, content)

    def change(tx: Tx) -> ImportedRecords:
        doing = _Import(tx, ctx)
        importer.add_all(doing, rows)
        outcome = {"added": doing.added, "present": doing.present, "notes": doing.remarks()}
        result = ImportedRecords(resource=resource, dry_run=dry_run, **outcome)
        if dry_run:
            raise _DryRunError(result)
        return result

    try:
        return await ctx.write(change)
    except _DryRunError as done:
        return done.result


def _each(add: Callable[[_Import, R], str | None]) -> Callable[[_Import, Sequence[R]], None]:
    """Add rows one by one, and collect what is wrong with them.

    Args:
        add: returns what the user calls a row, or None for one that is here already.
    """

    def add_all(doing: _Import, rows: Sequence[R]) -> None:
        problems: list[dict[str, Any]] = []
        for number, row in enumerate(rows, 1):
            try:
                label = add(doing, row)
            except WorkbenchError as error:
                problems.append(import_file.problem(number, error.code, error.message.rstrip(".")))
                continue
            if label is None:
                doing.present += 1
            else:
                doing.added.append(label)
        if problems:
            raise import_file.invalid(problems)

    return add_all


def _add_project(doing: _Import, row: SpaceRow) -> str | None:
    return _add_space(doing, PROJECT, row, None)


def _add_session(doing: _Import, row: SpaceRow) -> str | None:
    project = _place(doing.tx, PROJECT, require_project, row.project_id, row.project)
    if project is None:
        raise BadInput("PROJECT_REQUIRED", "Give project_id or project")
    return _add_space(doing, SESSION, row, project)


def _add_team(doing: _Import, row: SpaceRow) -> str | None:
    return _add_space(doing, TEAM, row, _place(doing.tx, SESSION, require_session, row.session_id, row.session))


def _add_space(doing: _Import, kind: SpaceKind[M], row: SpaceRow, parent: str | None) -> str | None:
    tx = doing.tx
    if (row.id and _is_here(tx, kind, row.id)) or tx.one(kind.sql.named, parent=parent, name=row.name):
        return None
    at = micros(row.created_at, tx.now)
    space.create(tx, kind, parent, row.name, row.description, space_id=row.id, at=at)
    return row.name


def _add_agent(doing: _Import, row: AgentRow) -> str | None:
    """Add an agent as if it had registered, and grant it what it had."""
    tx = doing.tx
    if row.registration_status is Registration.PENDING:
        doing.pending += 1
        return None
    if tx.one(SQL.agent, agent_id=row.agent_id):
        return None
    parent = tx.one(SQL.agent, agent_id=row.parent)
    name, registered = row.name or row.agent_id, micros(row.registered_at, tx.now)
    uid = str(uuid7(registered))
    tx.run(
        SQL.add_agent,
        id=uid,
        agent_id=f"pending_{uid}",
        name=name,
        status=_status(row.registration_status),
        token_hash=access.token_hash(access.new_token("wba")),
        parent=parent["id"] if parent else None,
        capabilities=json.dumps(row.capabilities),
        registered_at=registered,
        last_heartbeat=micros(row.last_heartbeat, registered),
    )
    granted = grants.apply(tx, agent_by_uid(tx, uid), _grant(doing, row))
    tx.emit("agent.imported", f"agent:{uid}", session=granted.get("session_id"), agent_id=row.agent_id, name=name)
    return row.agent_id


def _grant(doing: _Import, row: AgentRow) -> Grant:
    """The grant that an agent had, with its session and its team if they are here."""
    try:
        session = _place(doing.tx, SESSION, require_session, row.session_id, row.session)
        team = _place(doing.tx, TEAM, require_team, row.team_id, row.team)
    except NotFound:
        session = team = None
        doing.unplaced += 1
    return Grant(
        agent_id=row.agent_id,
        session_id=session,
        team_id=team,
        persona_id=row.persona_id,
        role=row.role,
        tool=row.tool,
        access_level=row.access_level,
        expires_at=row.expires_at,
    )


def _status(before: Registration) -> Registration:
    """An agent that has just been imported is not connected."""
    return Registration.INACTIVE if before is Registration.ACTIVE else before


def _add_context(doing: _Import, row: ContextRow) -> str | None:
    tx = doing.tx
    if row.id is not None and tx.one(SQL.context, id=row.id):
        return None
    session = _place(tx, SESSION, require_session, row.session_id, row.session)
    if session is None:
        raise BadInput("SESSION_REQUIRED", "Give session_id or session")
    author = tx.one(SQL.agent, agent_id=row.agent_id)
    doing.authorless += row.agent_id is not None and author is None
    written = ContextStamp(
        id=row.id or str(uuid7(tx.now)),
        agent=author["id"] if author else None,
        team=author["team_id"] if author else None,
        at=micros(row.created_at, tx.now),
    )
    new = NewContext(title=row.title, content=row.content, metadata=row.metadata)
    contexts.add_written(tx, doing.ctx.settings, session, new, written)
    return row.title or written.id


def _add_tasks(doing: _Import, rows: Sequence[TaskRow]) -> None:
    def session_of(row: TaskRow) -> str | None:
        return _place(doing.tx, SESSION, require_session, row.session_id, row.session)

    tasks = imported_tasks.add(doing.tx, doing.ctx, rows, session_of)
    doing.added, doing.present, doing.told = tasks.added, tasks.present, tasks.remarks


def _is_here(tx: Reader, kind: SpaceKind[M], space_id: str) -> bool:
    """Whether there is a space with an id, deleted or not."""
    rows = [space.find(tx, kind, space_id, deleted=deleted) for deleted in (False, True)]
    return any(row is not None and row["id"] == space_id for row in rows)


def _place(
    tx: Reader, kind: SpaceKind[M], require: Callable[[Reader, str], Row], ref: str | None, name: str | None
) -> str | None:
    """The id of a space that a row names by an id or, if that is of none here, by a name; None if it names none.

    Raises:
        WorkbenchError: what `require` raises.
    """
    reference = ref if ref and (name is None or _is_here(tx, kind, ref)) else name
    return str(require(tx, reference)["id"]) if reference else None


_IMPORTERS: Mapping[Importable, _Importer[Any]] = {
    "projects": _Importer(SpaceRow, _each(_add_project)),
    "sessions": _Importer(SpaceRow, _each(_add_session)),
    "teams": _Importer(SpaceRow, _each(_add_team)),
    "agents": _Importer(AgentRow, _each(_add_agent)),
    "contexts": _Importer(ContextRow, _each(_add_context)),
    "tasks": _Importer(TaskRow, _add_tasks),
}
