"""Sessions of a project: what agents and teams are put into, and contexts are written to (spec 1)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, NotFound
from workbench.model import Level, Micros, Wire, uuid7
from workbench.ops import Caller, Ctx, op
from workbench.rules.naming import Description, Name, resolve_ref
from workbench.rules.search import like_pattern
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Deleted, Limit, Search
from workbench.services.access import permissions
from workbench.services.spaces.projects import ProjectRef, project_scope, require_project
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

SessionRef = Annotated[str, Field(description="Id, or name.")]


class Session(Wire):
    """A stretch of work in a project. `contexts`, `agents` and `teams` count what is not deleted.

    `used_at` is when an agent was last put into it.
    """

    id: str
    project_id: str
    project: str
    name: str
    description: str
    teams: int
    agents: int
    contexts: int
    used_at: Micros | None
    created_at: Micros
    updated_at: Micros
    deleted_at: Micros | None


class Sessions(Wire):
    """Sessions, oldest first; read on with `next_cursor`, which is null at the end."""

    sessions: list[Session]
    total: int
    next_cursor: str | None


@op(allow=Level.OPERATOR)
async def create_session(ctx: Ctx, project_id: ProjectRef, name: Name, description: Description = "") -> Session:
    """Create a session in a project. Its name is its own among those of the project that are not deleted."""

    def change(tx: Tx) -> Session:
        project = require_project(tx, project_id)["id"]
        made = str(uuid7(tx.now))
        _require_free(tx, project, name, made)
        tx.run(SQL.add, id=made, project=project, name=name, description=description, now=tx.now)
        tx.emit("session.created", f"session:{made}", session=made, project_id=project, name=name)
        return _session(require_session(tx, made))

    return await ctx.write(change)


@op(allow=Level.READ, reads=True, tool=False)
async def get_session(ctx: Ctx, session_id: SessionRef) -> Session:
    """One session, if you may see it."""

    def question(tx: Reader) -> Session:
        permissions.check(tx, ctx.caller, "read", "sessions")
        return _session(require_session(tx, session_id, seen_by=ctx.caller))

    return await ctx.read(question)


@op(allow=Level.READ, reads=True, tool=False)
async def list_sessions(
    ctx: Ctx,
    project_id: Annotated[str | None, Field(description="Only those of this project (id or name).")] = None,
    search: Search = None,
    deleted: Deleted = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Sessions:
    """The sessions you may see, oldest first."""
    return await ctx.read(
        lambda tx: page(tx, ctx.caller, limit, cursor, project_id=project_id, search=search, deleted=deleted)
    )


@op(allow=Level.OPERATOR)
async def update_session(
    ctx: Ctx, session_id: SessionRef, name: Name | None = None, description: Description | None = None
) -> Session:
    """Rename a session, or describe it anew; what is not said stays as it is."""
    chosen = {key: value for key, value in {"name": name, "description": description}.items() if value is not None}

    def change(tx: Tx) -> Session:
        row = require_session(tx, session_id)
        if name is not None:
            _require_free(tx, row["project_id"], name, row["id"])
        if chosen:
            tx.run(SQL.update, id=row["id"], name=name, description=description, now=tx.now)
            _tell(tx, "session.updated", row, changes=sorted(chosen))
        return _session(require_session(tx, row["id"]))

    return await ctx.write(change)


@op(allow=Level.OPERATOR)
async def delete_session(ctx: Ctx, session_id: SessionRef) -> Session:
    """Delete a session and with it its teams and contexts; restore_session brings everything back."""

    def change(tx: Tx) -> Session:
        row = require_session(tx, session_id)
        tx.run(SQL.set_deleted, id=row["id"], at=tx.now)
        _tell(tx, "session.deleted", row)
        return _session(require_session(tx, row["id"], deleted=True))

    return await ctx.write(change)


@op(allow=Level.OPERATOR)
async def restore_session(ctx: Ctx, session_id: SessionRef) -> Session:
    """Bring a deleted session back, with its teams, agents and contexts."""

    def change(tx: Tx) -> Session:
        row = require_session(tx, session_id, deleted=True)
        _require_free(tx, row["project_id"], row["name"], row["id"])
        tx.run(SQL.set_deleted, id=row["id"], at=None)
        back = tx.one(SQL.find, project_scope(None, deleted=False), ref=row["id"])
        if back is None:
            raise NotFound("PROJECT_NOT_FOUND", f"Its project, {row['project']!r}, was deleted. Restore that first.")
        _tell(tx, "session.restored", row)
        return _session(back)

    return await ctx.write(change)


def require_session(tx: Reader, ref: str, *, deleted: bool = False, seen_by: Caller | None = None) -> Row:
    """The row of a session that is there (or of one that is gone, perhaps with its project), by id or name.

    Raises:
        NotFound: ``SESSION_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``.
    """
    row = resolve_ref(tx.all(SQL.find, project_scope(seen_by, deleted), ref=ref), ref, "session")
    if row is None:
        kind, more = ("deleted session", " with deleted=true") if deleted else ("session", "")
        raise NotFound("SESSION_NOT_FOUND", f"There is no {kind} {ref!r}. list_sessions{more} names them.")
    return row


def page(
    tx: Reader,
    caller: Caller,
    limit: int,
    cursor: str | None,
    *,
    project_id: str | None = None,
    search: str | None = None,
    since: int | None = None,
    deleted: bool = False,
) -> Sessions:
    """Some of the sessions a caller sees: of a project, changed since a time, or all of them.

    Raises:
        BadInput: ``BAD_CURSOR``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``. NotFound: ``PROJECT_NOT_FOUND``.
    """
    permissions.check(tx, caller, "read", "sessions")
    project = require_project(tx, project_id, seen_by=caller)["id"] if project_id else None
    wanted = {**project_scope(caller, deleted), "project": project, "search": like_pattern(search), "since": since}
    rows = tx.all(SQL.list, wanted | paging.after(cursor), limit=limit + 1)
    total = tx.one(SQL.count, wanted)
    assert total is not None
    shown, following = paging.cut(rows, limit, "created_at", "id")
    return Sessions(sessions=[_session(row) for row in shown], total=total["n"], next_cursor=following)


def _require_free(tx: Reader, project: str, name: str, besides: str) -> None:
    if tx.one(SQL.named, project=project, name=name, besides=besides):
        raise Conflict(
            "NAME_TAKEN", f"The project has a session {name!r} already. Choose another name, or rename that one."
        )


def _tell(tx: Tx, kind: str, row: Row, **data: object) -> None:
    tx.emit(kind, f"session:{row['id']}", session=row["id"], project_id=row["project_id"], **data)


def _session(row: Row) -> Session:
    return Session(**dict(row))
