"""Teams of agents. A team is in one session, or in none until it is moved into one (spec 1)."""

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
from workbench.services.spaces.sessions import SESSION, require_session
from workbench.services.spaces.space import SpaceFilter, SpaceKind
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

TeamRef = Annotated[str, Field(description="Id or name.")]
IntoSession = Annotated[str | None, Field(description="Its session (id or name), or none.")]


class Team(Wire):
    """A team; `agents` counts its members that are not deleted."""

    id: str
    session_id: str | None
    session: str | None
    name: str
    description: str
    agents: int
    created_at: Micros
    updated_at: Micros
    deleted_at: Micros | None


class Teams(Wire):
    """Teams, oldest first. `next_cursor` is null on the last page."""

    SHOWN: ClassVar = Columns(
        "teams",
        "id name=team session description agents created_at=created deleted_at=deleted",
        "There are no teams. `workbench teams add NAME --session SESSION` creates one.",
    )

    teams: list[Team]
    total: int
    next_cursor: str | None


TEAM = SpaceKind(
    noun="team",
    resource="teams",
    parent="session",
    model=Team,
    sql=SQL,
    event=lambda row: {"session": row["session_id"]},
)


@op(
    allow=Level.OPERATOR,
    command=Command("teams add NAME", "Created the team {name}; its id is {id}."),
    rest=RestRoute("POST", "/teams"),
)
async def create_team(ctx: Ctx, name: Name, session_id: IntoSession = None, description: Description = "") -> Team:
    """Create a team. Names are unique among the teams of a session, or without one, that are not deleted."""
    return await ctx.write(lambda tx: space.create(tx, TEAM, _session(tx, session_id), name, description))


@op(allow=Level.READ, reads=True, tool=False, rest=RestRoute("GET", "/teams/{team_id}"))
async def get_team(ctx: Ctx, team_id: TeamRef) -> Team:
    """Get a team that is visible to you."""

    def question(tx: Reader) -> Team:
        permissions.check(tx, ctx.caller, "read", "teams")
        return TEAM.of(require_team(tx, team_id, visible_to=ctx.caller))

    return await ctx.read(question)


@op(
    allow=Level.READ,
    reads=True,
    tool=False,
    command=Command("teams list"),
    rest=RestRoute("GET", "/teams", rows="teams"),
    refreshed_by="project session team agent",
)
async def list_teams(
    ctx: Ctx,
    session_id: Annotated[str | None, Field(description="Only teams of this session (id or name).")] = None,
    search: Search = None,
    deleted: Deleted = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Teams:
    """List the teams that are visible to you, oldest first."""
    filters = SpaceFilter(search, deleted)
    return await ctx.read(lambda tx: page(tx, ctx.caller, filters, limit, cursor, session_id))


@op(allow=Level.OPERATOR, command=space.edits("team"), rest=RestRoute("PATCH", "/teams/{team_id}"))
async def update_team(
    ctx: Ctx, team_id: TeamRef, name: Name | None = None, description: Description | None = None
) -> Team:
    """Rename a team or change its description; omitted arguments stay unchanged."""
    return await ctx.write(lambda tx: space.update(tx, TEAM, require_team(tx, team_id), name, description))


@op(
    allow=Level.OPERATOR,
    command=Command("teams move TEAM_ID SESSION_ID", "Moved {team_id}."),
    rest=RestRoute("POST", "/teams/{team_id}/move"),
)
async def move_team(ctx: Ctx, team_id: TeamRef, session_id: IntoSession) -> Team:
    """Move a team and its members to a session, or to none."""

    def change(tx: Tx) -> Team:
        row = require_team(tx, team_id)
        session = _session(tx, session_id)
        if session != row["session_id"]:
            space.require_free(tx, TEAM, session, row["name"])
            tx.run(SQL.move, id=row["id"], session=session, now=tx.now)
            agents = tx.run(SQL.move_members, team=row["id"], session=session)
            tx.emit("team.moved", f"team:{row['id']}", session=session, left=row["session_id"], agents=agents)
        return TEAM.of(require_team(tx, row["id"]))

    return await ctx.write(change)


@op(
    allow=Level.OPERATOR,
    command=Command("teams delete TEAM_ID", "Deleted {team_id}. `teams restore {id}` brings it back."),
    rest=RestRoute("DELETE", "/teams/{team_id}"),
)
async def delete_team(ctx: Ctx, team_id: TeamRef) -> Team:
    """Delete a team. Its members stay in their session; restore_team restores the team with its members."""
    return await ctx.write(lambda tx: space.delete(tx, TEAM, require_team(tx, team_id)))


@op(
    allow=Level.OPERATOR,
    command=Command("teams restore TEAM_ID", "Restored {team_id}."),
    rest=RestRoute("POST", "/teams/{team_id}/restore"),
)
async def restore_team(ctx: Ctx, team_id: TeamRef) -> Team:
    """Restore a deleted team with the agents that are still its members."""

    def change(tx: Tx) -> Team:
        row = require_team(tx, team_id, deleted=True)
        if row["session_id"] and space.find(tx, SESSION, row["session_id"]) is None:
            raise NotFound("SESSION_NOT_FOUND", f"Its session, {row['session']!r}, is deleted. Restore it first.")
        return space.restore(tx, TEAM, row)

    return await ctx.write(change)


def require_team(tx: Reader, ref: str, *, deleted: bool = False, visible_to: Caller | None = None) -> Row:
    """The row of a team, deleted (perhaps with its session) or not, by id or name.

    Raises:
        NotFound: ``TEAM_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``.
    """
    row = space.find(tx, TEAM, ref, deleted=deleted, visible_to=visible_to)
    if row is None:
        kind, given = ("deleted team", {"deleted": True}) if deleted else ("team", {})
        raise NotFound("TEAM_NOT_FOUND", f"There is no {kind} {ref!r}.", Hint("list_teams", **given))
    return row


def page(
    tx: Reader, caller: Caller, filters: SpaceFilter, limit: int, cursor: str | None, session_id: str | None
) -> Teams:
    """One page of the teams visible to a caller, of a session (id or name) or of all; see `space.page`.

    Raises:
        NotFound: ``SESSION_NOT_FOUND``.
    """
    parent = _session(tx, session_id, visible_to=caller)
    listing = space.page(tx, TEAM, caller, replace(filters, parent=parent), limit, cursor)
    return Teams(teams=[*listing.spaces], total=listing.total, next_cursor=listing.next_cursor)


def _session(tx: Reader, ref: str | None, visible_to: Caller | None = None) -> str | None:
    return str(require_session(tx, ref, visible_to=visible_to)["id"]) if ref else None
