"""Projects, the top of the hierarchy (spec 1): each has sessions."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import Level, Micros, Wire
from workbench.ops import Caller, Columns, Command, Ctx, RestRoute, op
from workbench.rules.naming import Description, Name
from workbench.rules.wire.paging import Cursor, Deleted, Limit, Search
from workbench.services.access import permissions
from workbench.services.spaces import space
from workbench.services.spaces.space import SpaceFilter, SpaceKind
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

ProjectRef = Annotated[str, Field(description="Id or name.")]


class Project(Wire):
    """A project; `sessions` counts those that are not deleted."""

    id: str
    name: str
    description: str
    sessions: int
    created_at: Micros
    updated_at: Micros
    deleted_at: Micros | None


class Projects(Wire):
    """Projects, oldest first. `next_cursor` is null on the last page."""

    SHOWN: ClassVar = Columns(
        "projects",
        "id name=project description sessions created_at=created deleted_at=deleted",
        "There are no projects. `workbench projects add NAME` creates one.",
    )

    projects: list[Project]
    total: int
    next_cursor: str | None


PROJECT = SpaceKind(
    noun="project",
    resource="projects",
    parent=None,
    model=Project,
    sql=SQL,
    event=lambda row: {},
)


@op(
    allow=Level.OPERATOR,
    command=Command("projects add NAME", "Created the project {name}; its id is {id}."),
    rest=RestRoute("POST", "/projects"),
)
async def create_project(ctx: Ctx, name: Name, description: Description = "") -> Project:
    """Create a project. Names are unique among projects that are not deleted."""
    return await ctx.write(lambda tx: space.create(tx, PROJECT, None, name, description))


@op(allow=Level.READ, reads=True, tool=False, rest=RestRoute("GET", "/projects/{project_id}"))
async def get_project(ctx: Ctx, project_id: ProjectRef) -> Project:
    """Get a project that is visible to you."""

    def question(tx: Reader) -> Project:
        permissions.check(tx, ctx.caller, "read", "projects")
        return PROJECT.of(require_project(tx, project_id, visible_to=ctx.caller))

    return await ctx.read(question)


@op(
    allow=Level.READ,
    reads=True,
    tool=False,
    command=Command("projects list"),
    rest=RestRoute("GET", "/projects", rows="projects"),
    refreshed_by="project session",
)
async def list_projects(
    ctx: Ctx,
    search: Search = None,
    deleted: Deleted = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Projects:
    """List the projects that are visible to you, oldest first."""
    return await ctx.read(lambda tx: page(tx, ctx.caller, SpaceFilter(search, deleted), limit, cursor))


@op(allow=Level.OPERATOR, command=space.edits("project"), rest=RestRoute("PATCH", "/projects/{project_id}"))
async def update_project(
    ctx: Ctx, project_id: ProjectRef, name: Name | None = None, description: Description | None = None
) -> Project:
    """Rename a project or change its description; omitted arguments stay unchanged."""
    return await ctx.write(lambda tx: space.update(tx, PROJECT, require_project(tx, project_id), name, description))


@op(allow=Level.OPERATOR, command="projects delete", rest=RestRoute("DELETE", "/projects/{project_id}"))
async def delete_project(ctx: Ctx, project_id: ProjectRef) -> Project:
    """Delete a project with its sessions, teams and contexts; restore_project restores all of it."""
    return await ctx.write(lambda tx: space.delete(tx, PROJECT, require_project(tx, project_id)))


@op(
    allow=Level.OPERATOR,
    command=Command("projects restore PROJECT_ID", "Restored {project_id}."),
    rest=RestRoute("POST", "/projects/{project_id}/restore"),
)
async def restore_project(ctx: Ctx, project_id: ProjectRef) -> Project:
    """Restore a deleted project with its sessions, teams and contexts."""
    return await ctx.write(lambda tx: space.restore(tx, PROJECT, require_project(tx, project_id, deleted=True)))


def require_project(tx: Reader, ref: str, *, deleted: bool = False, visible_to: Caller | None = None) -> Row:
    """The row of a project, deleted or not, by id or name.

    Raises:
        NotFound: ``PROJECT_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``.
    """
    row = space.find(tx, PROJECT, ref, deleted=deleted, visible_to=visible_to)
    if row is None:
        kind, given = ("deleted project", {"deleted": True}) if deleted else ("project", {})
        raise NotFound("PROJECT_NOT_FOUND", f"There is no {kind} {ref!r}.", Hint("list_projects", **given))
    return row


def page(tx: Reader, caller: Caller, filters: SpaceFilter, limit: int, cursor: str | None) -> Projects:
    """One page of the projects that are visible to a caller; see `space.page`."""
    listing = space.page(tx, PROJECT, caller, filters, limit, cursor)
    return Projects(projects=[*listing.spaces], total=listing.total, next_cursor=listing.next_cursor)
