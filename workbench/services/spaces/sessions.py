"""Sessions of projects: agents and teams belong to them, and contexts are written to them (spec 1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import Level, Micros, Wire
from workbench.ops import Caller, Columns, Command, Ctx, RestRoute, op
from workbench.rules.naming import Description, Name
from workbench.rules.wire.paging import Cursor, Deleted, Limit, Search
from workbench.services.access import permissions
from workbench.services.spaces import space
from workbench.services.spaces.projects import PROJECT, ProjectRef, require_project
from workbench.services.spaces.space import SpaceFilter, SpaceKind
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

SessionRef = Annotated[str, Field(description="Id or name.")]


class SessionInfo(Wire):
    """A session of a project. `contexts`, `agents` and `teams` count what is not deleted."""

    id: str
    project_id: str
    project: str
    name: str
    description: str
    teams: int
    agents: int
    contexts: int
    created_at: Micros
    updated_at: Micros
    deleted_at: Micros | None


class Sessions(Wire):
    """Sessions, oldest first. `next_cursor` is null on the last page."""

    SHOWN: ClassVar = Columns(
        "sessions",
        "id name=session project teams agents contexts created_at=created deleted_at=deleted",
        "There are no sessions. `workbench sessions add PROJECT NAME` creates one.",
    )

    sessions: list[SessionInfo]
    total: int
    next_cursor: str | None


SESSION = SpaceKind(
    noun="session",
    resource="sessions",
    parent="project",
    model=SessionInfo,
    sql=SQL,
    event=lambda row: {"session": row["id"], "project_id": row["project_id"]},
)


@op(
    allow=Level.OPERATOR,
    command=Command("sessions add PROJECT_ID NAME", "Created the session {name}; its id is {id}."),
    rest=RestRoute("POST", "/sessions"),
)
async def create_session(ctx: Ctx, project_id: ProjectRef, name: Name, description: Description = "") -> SessionInfo:
    """Create a session in a project. Names are unique among the project's sessions that are not deleted."""
    return await ctx.write(
        lambda tx: space.create(tx, SESSION, require_project(tx, project_id)["id"], name, description)
    )


@op(allow=Level.READ, reads=True, tool=False, rest=RestRoute("GET", "/sessions/{session_id}"))
async def get_session(ctx: Ctx, session_id: SessionRef) -> SessionInfo:
    """Get a session that is visible to you."""

    def question(tx: Reader) -> SessionInfo:
        permissions.check(tx, ctx.caller, "read", "sessions")
        return SESSION.of(require_session(tx, session_id, visible_to=ctx.caller))

    return await ctx.read(question)


@op(
    allow=Level.READ,
    reads=True,
    tool=False,
    command=Command("sessions list", names={"in": "project_id"}),
    rest=RestRoute("GET", "/sessions", rows="sessions"),
    refreshed_by="project session team agent context",
)
async def list_sessions(
    ctx: Ctx,
    project_id: Annotated[str | None, Field(description="Only sessions of this project (id or name).")] = None,
    search: Search = None,
    deleted: Deleted = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Sessions:
    """List the sessions that are visible to you, oldest first."""
    filters = SpaceFilter(search, deleted)
    return await ctx.read(lambda tx: page(tx, ctx.caller, filters, limit, cursor, project_id))


@op(allow=Level.OPERATOR, command=space.edits("session"), rest=RestRoute("PATCH", "/sessions/{session_id}"))
async def update_session(
    ctx: Ctx, session_id: SessionRef, name: Name | None = None, description: Description | None = None
) -> SessionInfo:
    """Rename a session or change its description; omitted arguments stay unchanged."""
    return await ctx.write(lambda tx: space.update(tx, SESSION, require_session(tx, session_id), name, description))


@op(allow=Level.OPERATOR, command="sessions delete", rest=RestRoute("DELETE", "/sessions/{session_id}"))
async def delete_session(ctx: Ctx, session_id: SessionRef) -> SessionInfo:
    """Delete a session with its teams and contexts; restore_session restores all of it."""
    return await ctx.write(lambda tx: space.delete(tx, SESSION, require_session(tx, session_id)))


@op(
    allow=Level.OPERATOR,
    command=Command("sessions restore SESSION_ID", "Restored {session_id}."),
    rest=RestRoute("POST", "/sessions/{session_id}/restore"),
)
async def restore_session(ctx: Ctx, session_id: SessionRef) -> SessionInfo:
    """Restore a deleted session with its teams, agents and contexts."""

    def change(tx: Tx) -> SessionInfo:
        row = require_session(tx, session_id, deleted=True)
        if space.find(tx, PROJECT, row["project_id"]) is None:
            raise NotFound("PROJECT_NOT_FOUND", f"Its project, {row['project']!r}, is deleted. Restore it first.")
        return space.restore(tx, SESSION, row)

    return await ctx.write(change)


def require_session(tx: Reader, ref: str, *, deleted: bool = False, visible_to: Caller | None = None) -> Row:
    """The row of a session, deleted (perhaps with its project) or not, by id or name.

    Raises:
        NotFound: ``SESSION_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``.
    """
    row = space.find(tx, SESSION, ref, deleted=deleted, visible_to=visible_to)
    if row is None:
        kind, given = ("deleted session", {"deleted": True}) if deleted else ("session", {})
        raise NotFound("SESSION_NOT_FOUND", f"There is no {kind} {ref!r}.", Hint("list_sessions", **given))
    return row


def page(
    tx: Reader, caller: Caller, filters: SpaceFilter, limit: int, cursor: str | None, project_id: str | None
) -> Sessions:
    """One page of the sessions visible to a caller, of a project (id or name) or of all; see `space.page`.

    Raises:
        NotFound: ``PROJECT_NOT_FOUND``.
    """
    parent = require_project(tx, project_id, visible_to=caller)["id"] if project_id else None
    listing = space.page(tx, SESSION, caller, replace(filters, parent=parent), limit, cursor)
    return Sessions(sessions=[*listing.spaces], total=listing.total, next_cursor=listing.next_cursor)
