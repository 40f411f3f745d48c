"""Teams: agents that belong together. A team is in one session, or waits to be put into one (spec 1)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict, NotFound
from workbench.model import Access, Level, Micros, Wire, uuid7
from workbench.ops import Caller, Ctx, op
from workbench.rules.naming import Description, Name, resolve_ref
from workbench.rules.search import like_pattern
from workbench.rules.wire import paging
from workbench.rules.wire.paging import Cursor, Deleted, Limit, Search
from workbench.services.access import permissions
from workbench.services.spaces.sessions import require_session
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

TeamRef = Annotated[str, Field(description="Id, or name.")]
IntoSession = Annotated[str | None, Field(description="The session (id or name) it is in; null for none.")]


class Team(Wire):
    """Agents that belong together."""

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
    """Teams, oldest first; read on with `next_cursor`, which is null at the end."""

    teams: list[Team]
    total: int
    next_cursor: str | None


@op(allow=Level.OPERATOR)
async def create_team(ctx: Ctx, name: Name, session_id: IntoSession = None, description: Description = "") -> Team:
    """Create a team. Its name is its own among those of its session, or of those without, that are not deleted."""

    def change(tx: Tx) -> Team:
        session = require_session(tx, session_id)["id"] if session_id else None
        made = str(uuid7(tx.now))
        _require_free(tx, session, name, made)
        tx.run(SQL.add, id=made, session=session, name=name, description=description, now=tx.now)
        tx.emit("team.created", f"team:{made}", session=session, name=name)
        return _team(require_team(tx, made))

    return await ctx.write(change)


@op(allow=Level.READ, reads=True, tool=False)
async def get_team(ctx: Ctx, team_id: TeamRef) -> Team:
    """One team, if you may see it."""

    def question(tx: Reader) -> Team:
        permissions.check(tx, ctx.caller, "read", "teams")
        return _team(require_team(tx, team_id, seen_by=ctx.caller))

    return await ctx.read(question)


@op(allow=Level.READ, reads=True, tool=False)
async def list_teams(
    ctx: Ctx,
    session_id: Annotated[str | None, Field(description="Only those of this session (id or name).")] = None,
    search: Search = None,
    deleted: Deleted = False,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Teams:
    """The teams you may see, oldest first."""
    return await ctx.read(
        lambda tx: page(tx, ctx.caller, limit, cursor, session_id=session_id, search=search, deleted=deleted)
    )


@op(allow=Level.OPERATOR)
async def update_team(
    ctx: Ctx, team_id: TeamRef, name: Name | None = None, description: Description | None = None
) -> Team:
    """Rename a team, or describe it anew; what is not said stays as it is."""
    chosen = {key: value for key, value in {"name": name, "description": description}.items() if value is not None}

    def change(tx: Tx) -> Team:
        row = require_team(tx, team_id)
        if name is not None:
            _require_free(tx, row["session_id"], name, row["id"])
        if chosen:
            tx.run(SQL.update, id=row["id"], name=name, description=description, now=tx.now)
            _tell(tx, "team.updated", row, changes=sorted(chosen))
        return _team(require_team(tx, row["id"]))

    return await ctx.write(change)


@op(allow=Level.OPERATOR)
async def move_team(ctx: Ctx, team_id: TeamRef, session_id: IntoSession) -> Team:
    """Put a team into a session, or take it out of its own with null; its members go along."""

    def change(tx: Tx) -> Team:
        row = require_team(tx, team_id)
        session = require_session(tx, session_id)["id"] if session_id else None
        if session != row["session_id"]:
            _require_free(tx, session, row["name"], row["id"])
            tx.run(SQL.move, id=row["id"], session=session, now=tx.now)
            agents = tx.run(SQL.move_members, team=row["id"], session=session)
            tx.emit("team.moved", f"team:{row['id']}", session=session, left=row["session_id"], agents=agents)
        return _team(require_team(tx, row["id"]))

    return await ctx.write(change)


@op(allow=Level.OPERATOR)
async def delete_team(ctx: Ctx, team_id: TeamRef) -> Team:
    """Delete a team; its members stay in their session, and are its members again after restore_team."""

    def change(tx: Tx) -> Team:
        row = require_team(tx, team_id)
        tx.run(SQL.set_deleted, id=row["id"], at=tx.now)
        _tell(tx, "team.deleted", row)
        return _team(require_team(tx, row["id"], deleted=True))

    return await ctx.write(change)


@op(allow=Level.OPERATOR)
async def restore_team(ctx: Ctx, team_id: TeamRef) -> Team:
    """Bring a deleted team back, with those who are still its members."""

    def change(tx: Tx) -> Team:
        row = require_team(tx, team_id, deleted=True)
        _require_free(tx, row["session_id"], row["name"], row["id"])
        tx.run(SQL.set_deleted, id=row["id"], at=None)
        back = tx.one(SQL.find, _sight(None, deleted=False), ref=row["id"])
        if back is None:
            raise NotFound("SESSION_NOT_FOUND", f"Its session, {row['session']!r}, was deleted. Restore that first.")
        _tell(tx, "team.restored", row)
        return _team(back)

    return await ctx.write(change)


def require_team(tx: Reader, ref: str, *, deleted: bool = False, seen_by: Caller | None = None) -> Row:
    """The row of a team that is there (or of one that is gone, perhaps with its session), by id or name.

    Raises:
        NotFound: ``TEAM_NOT_FOUND``. BadInput: ``AMBIGUOUS_NAME``.
    """
    row = resolve_ref(tx.all(SQL.find, _sight(seen_by, deleted), ref=ref), ref, "team")
    if row is None:
        kind, more = ("deleted team", " with deleted=true") if deleted else ("team", "")
        raise NotFound("TEAM_NOT_FOUND", f"There is no {kind} {ref!r}. list_teams{more} names them.")
    return row


def page(
    tx: Reader,
    caller: Caller,
    limit: int,
    cursor: str | None,
    *,
    session_id: str | None = None,
    search: str | None = None,
    since: int | None = None,
    deleted: bool = False,
) -> Teams:
    """Some of the teams a caller sees: of a session, changed since a time, or all of them.

    Raises:
        BadInput: ``BAD_CURSOR``. Refused: ``NOT_PERMITTED``, ``TOOL_DISABLED``. NotFound: ``SESSION_NOT_FOUND``.
    """
    permissions.check(tx, caller, "read", "teams")
    session = require_session(tx, session_id, seen_by=caller)["id"] if session_id else None
    wanted = {**_sight(caller, deleted), "session": session, "search": like_pattern(search), "since": since}
    rows = tx.all(SQL.list, wanted | paging.after(cursor), limit=limit + 1)
    total = tx.one(SQL.count, wanted)
    assert total is not None
    shown, following = paging.cut(rows, limit, "created_at", "id")
    return Teams(teams=[_team(row) for row in shown], total=total["n"], next_cursor=following)


def _sight(caller: Caller | None, deleted: bool) -> dict[str, Any]:
    """Which teams a caller sees, as parameters: an agent its own, or its session's; not deleted ones. None sees all."""
    if caller is None or caller.level is Level.OPERATOR:
        return {"everything": 1, "own": None, "of_session": None, "deleted": int(deleted)}
    session = caller.session if caller.access is Access.SESSION_LEVEL else None
    seen = {"own": None, "of_session": None} if deleted else {"own": caller.team, "of_session": session}
    return {"everything": 0, **seen, "deleted": int(deleted)}


def _require_free(tx: Reader, session: str | None, name: str, besides: str) -> None:
    if tx.one(SQL.named, session=session or "", name=name, besides=besides):
        where = "The session has" if session else "Those without a session have"
        raise Conflict("NAME_TAKEN", f"{where} a team {name!r} already. Choose another name, or rename that one.")


def _tell(tx: Tx, kind: str, row: Row, **data: object) -> None:
    tx.emit(kind, f"team:{row['id']}", session=row["session_id"], **data)


def _team(row: Row) -> Team:
    return Team(**dict(row))
