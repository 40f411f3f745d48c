"""Projects, the top of the hierarchy (spec 1). What is under a deleted one is gone as well, until it is restored."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict, NotFound
from workbench.model import Level, Micros, Wire, uuid7
from workbench.ops import Caller, Ctx, op
from workbench.rules.naming import Description, Name, resolve_ref
from workbench.rules.search import like_pattern
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Deleted, Limit, Search
from workbench.services.access import permissions
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

ProjectRef = Annotated[str, Field(description="Id, or name.")]


class Project(Wire):
    """What several sessions work on."""

    id: str
    name: str
    description: str
    sessions: int
    created_at: Micros
    updated_at: Micros
    deleted_at: Micros | None


class Projects(Wire):
    """Projects, oldest first; read on with `next_cursor`, which is null at the end."""

    projects: list[Project]
    total: int
    next_cursor: str | None


@op(allow=Level.OPERATOR)
async def create_project(ctx: Ctx, name: Name, description: Description = "") -> Project:
    """Create a project. Its name is its own among those that are not deleted."""

    def change(tx: Tx) -> Project:
        made = str(uuid7(tx.now))
        _require_free(tx, name, made)
        tx.run(SQL.add, id=made, name=name, description=description, now=tx.now)
        tx.emit("project.created", f"project:{made}", name=name)
        return _project(require_project(tx, made))

    return await ctx.write(change)


@op(allow=Level.READ, reads=True, tool=False)
async def get_project(ctx: Ctx, project_id: ProjectRef) -> Project:
    """One project, if you may see it."""

    def question(tx: Reader) -> Project:
        permissions.check(tx, ctx.caller, "read", "projects")
        return _project(require_project(tx, project_id, seen_by=ctx.caller))

    return await ctx.read(question)


@op(allow=Level.READ, reads=True, tool=False)
async def list_projects(
    ctx: Ctx,
    search: Search = None,
    deleted: Deleted = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Projects:
    """The projects you may see, oldest first."""
    return await ctx.read(lambda tx: page(tx, ctx.caller, limit, cursor, search=search, deleted=deleted))


@op(allow=Level.OPERATOR)
async def update_project(
    ctx: Ctx, project_id: ProjectRef, name: Name | None = None, description: Description | None = None
) -> Project:
    """Rename a project, or describe it anew; what is not said stays as it is."""
    chosen = {key: value for key, value in {"name": name, "description": description}.items() if value is not None}

    def change(tx: Tx) -> Project:
        found = require_project(tx, project_id)["id"]
        if name is not None:
            _require_free(tx, name, found)
        if chosen:
            tx.run(SQL.update, id=found, name=name, description=description, now=tx.now)
            tx.emit("project.updated", f"project:{found}", changes=sorted(chosen))
        return _project(require_project(tx, found))

    return await ctx.write(change)


@op(allow=Level.OPERATOR)
async def delete_project(ctx: Ctx, project_id: ProjectRef) -> Project:
    """Delete a project and with it all that is under it; restore_project brings everything back."""

    def change(tx: Tx) -> Project:
        found = require_project(tx, project_id)["id"]
        tx.run(SQL.set_deleted, id=found, at=tx.now)
        tx.emit("project.deleted", f"project:{found}")
        return _project(require_project(tx, found, deleted=True))

    return await ctx.write(change)


@op(allow=Level.OPERATOR)
async def restore_project(ctx: Ctx, project_id: ProjectRef) -> Project:
    """Bring a deleted project back, with all that is under it."""

    def change(tx: Tx) -> Project:
        row = require_project(tx, project_id, deleted=True)
        _require_free(tx, row["name"], row["id"])
        tx.run(SQL.set_deleted, id=row["id"], at=None)
        tx.emit("project.restored", f"project:{row['id']}")
        return _project(require_project(tx, row["id"]))

    return await ctx.write(change)


def require_project(tx: Reader, ref: str, *, deleted: bool = False, seen_by: Caller | None = None) -> Row:
    """The row of a project that is there (or of one that was deleted), by id or name.

    Raises:
        NotFound: ``PROJECT_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``.
    """
    found = tx.all(SQL.find, project_scope(seen_by, deleted), ref=ref)
    row = resolve_ref(found, ref, "project")
    if row is None:
        kind, more = ("deleted project", " with deleted=true") if deleted else ("project", "")
        raise NotFound("PROJECT_NOT_FOUND", f"There is no {kind} {ref!r}. list_projects{more} names them.")
    return row


def page(
    tx: Reader,
    caller: Caller,
    limit: int,
    cursor: str | None,
    *,
    search: str | None = None,
    since: int | None = None,
    deleted: bool = False,
) -> Projects:
    """Some of the projects a caller sees: those changed since a time, or all of them.

    Raises:
        BadInput: ``BAD_CURSOR``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``.
    """
    permissions.check(tx, caller, "read", "projects")
    wanted = {**project_scope(caller, deleted), "search": like_pattern(search), "since": since}
    rows = tx.all(SQL.list, wanted | paging.after(cursor), limit=limit + 1)
    total = tx.one(SQL.count, wanted)
    assert total is not None
    shown, following = paging.cut(rows, limit, "created_at", "id")
    return Projects(projects=[_project(row) for row in shown], total=total["n"], next_cursor=following)


def project_scope(caller: Caller | None, deleted: bool) -> dict[str, Any]:
    """Which projects and sessions a caller sees, as parameters: an agent its own, if not deleted; None sees all."""
    if caller is None or caller.level is Level.OPERATOR:
        return {"everything": 1, "own": None, "deleted": int(deleted)}
    return {"everything": 0, "own": None if deleted else caller.session, "deleted": int(deleted)}


def _require_free(tx: Reader, name: str, besides: str) -> None:
    if tx.one(SQL.named, name=name, besides=besides):
        raise Conflict("NAME_TAKEN", f"There is a project {name!r} already. Choose another name, or rename that one.")


def _project(row: Row) -> Project:
    return Project(**dict(row))
