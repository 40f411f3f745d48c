"""The operations `read` and `write` of spec 1. The services that own the rows decide what is visible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from workbench.errors import BadInput, Refused
from workbench.model import Access, Int64, Level, Registration, TaskState, Wire
from workbench.ops import SAID, Caller, Ctx, RestRoute, first_problems, op, problems_of
from workbench.rules.wire.paging import Cursor, Search
from workbench.services.access import permissions
from workbench.services.agents import directory
from workbench.services.sharing import contexts
from workbench.services.sharing.contexts import NewContext
from workbench.services.spaces import projects, sessions, space, teams
from workbench.services.spaces.sessions import require_session
from workbench.services.tasks import board
from workbench.store.base import Reader, Tx

F = TypeVar("F", bound=Wire)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProjectFilters(Wire):
    """Filters for projects."""

    search: Search = None


class SessionFilters(Wire):
    """Filters for sessions."""

    project_id: str | None = None
    search: Search = None


class TeamFilters(Wire):
    """Filters for teams."""

    session_id: str | None = None
    search: Search = None


class AgentFilters(Wire):
    """Filters for agents."""

    status: Registration | None = None
    team_id: str | None = None
    session_id: str | None = None


class TaskFilters(Wire):
    """Filters for tasks."""

    status: TaskState | None = None
    persona_id: str | None = None


class ReadResult(Wire):
    """Rows of one type, as far as the caller's access level permits. `next_cursor` is null on the last page.

    `count` is the number of rows in `data`. `total` is null for contexts and tasks, which are not counted.
    """

    resource_type: str
    access_level: Access
    data: list[dict[str, Any]]
    count: int
    total: int | None = None
    next_cursor: str | None


class WrittenContext(Wire):
    """The new context, with its number in its session."""

    resource_type: str
    context_id: str
    sequence_number: int
    status: Literal["success"] = "success"


@dataclass(frozen=True, slots=True)
class ReadPage:
    """Which page to read, and only rows created or changed after `since` (microseconds UTC)."""

    limit: int
    cursor: str | None
    since: int | None


@op(allow=Level.READ, reads=True, rest=RestRoute("GET", "/contexts", rows="data"))
async def read(
    ctx: Ctx,
    resource_type: Annotated[
        str, Field(description="What to read: contexts, sessions, projects, teams, agents or tasks.")
    ] = "contexts",
    filters: Annotated[
        dict[str, Any],
        Field(description="For contexts: session_id, agent_id, search (words), title, sequence_after."),
    ] = {},
    limit: Annotated[int, Field(ge=1, le=500, description="At most this many; the rest follows with cursor.")] = 10,
    cursor: Cursor = None,
    since: Annotated[
        AwareDatetime | Int64 | None,
        Field(description="Only what was created or changed after this: ISO 8601, or microseconds."),
    ] = None,
) -> ReadResult:
    """Read the rows that are visible to you: contexts newest first, all others oldest first."""
    reader = _READERS.get(resource_type)
    if reader is None:
        raise _unknown(resource_type, _READERS)
    page = ReadPage(limit, cursor, _micros(since))
    return await ctx.read(lambda tx: reader(tx, ctx, filters, page))


@op(allow=Level.WORKER, rest=RestRoute("POST", "/contexts", body="content"))
async def write(
    ctx: Ctx,
    content: Annotated[NewContext, SAID, Field(description="The context to add.")],
    resource_type: Annotated[str, Field(description="What to write: only contexts.")] = "contexts",
    session_id: Annotated[str | None, Field(description="For the operator: the session (id or name).")] = None,
) -> WrittenContext:
    """Write a context to your session, for other agents to read."""
    if resource_type != "contexts":
        raise _unknown(resource_type, ["contexts"])

    def change(tx: Tx) -> WrittenContext:
        permissions.check(tx, ctx.caller, "write", "contexts")
        context_id, number = contexts.add(tx, ctx.caller, ctx.settings, _session(tx, ctx.caller, session_id), content)
        return WrittenContext(resource_type=resource_type, context_id=context_id, sequence_number=number)

    return await ctx.write(change)


def _session(tx: Reader, caller: Caller, chosen: str | None) -> str:
    """The session to write to: an agent's own, or the one that the operator chooses."""
    if caller.level is Level.OPERATOR:
        chosen = chosen or caller.session
        if chosen is None:
            raise BadInput("SESSION_REQUIRED", "Set session_id to the id or name of the session to write to.")
        return str(require_session(tx, chosen)["id"])
    if chosen not in (None, caller.session):
        raise Refused("FORBIDDEN", "An agent can write only to its own session. Omit session_id.")
    if caller.session is None:
        raise BadInput("SESSION_REQUIRED", "You are in no session. Ask the operator to assign you to one.")
    return caller.session


def _contexts(tx: Reader, ctx: Ctx, filters: Mapping[str, Any], page: ReadPage) -> ReadResult:
    chosen = _parse(contexts.Filters, filters)
    rows, following = contexts.page(tx, ctx.caller, page.limit, page.cursor, chosen, page.since)
    return _result(ctx, "contexts", rows, following)


def _projects(tx: Reader, ctx: Ctx, filters: Mapping[str, Any], page: ReadPage) -> ReadResult:
    chosen = _parse(ProjectFilters, filters)
    which = space.SpaceFilter(chosen.search, since=page.since)
    listed = projects.page(tx, ctx.caller, which, page.limit, page.cursor)
    return _result(ctx, "projects", listed.projects, listed.next_cursor, listed.total)


def _sessions(tx: Reader, ctx: Ctx, filters: Mapping[str, Any], page: ReadPage) -> ReadResult:
    chosen = _parse(SessionFilters, filters)
    which = space.SpaceFilter(chosen.search, since=page.since)
    listed = sessions.page(tx, ctx.caller, which, page.limit, page.cursor, chosen.project_id)
    return _result(ctx, "sessions", listed.sessions, listed.next_cursor, listed.total)


def _teams(tx: Reader, ctx: Ctx, filters: Mapping[str, Any], page: ReadPage) -> ReadResult:
    chosen = _parse(TeamFilters, filters)
    which = space.SpaceFilter(chosen.search, since=page.since)
    listed = teams.page(tx, ctx.caller, which, page.limit, page.cursor, chosen.session_id)
    return _result(ctx, "teams", listed.teams, listed.next_cursor, listed.total)


def _agents(tx: Reader, ctx: Ctx, filters: Mapping[str, Any], page: ReadPage) -> ReadResult:
    chosen = directory.AgentFilter(**_parse(AgentFilters, filters).model_dump(), since=page.since)
    listed = directory.page(tx, ctx, chosen, page.limit, page.cursor)
    return _result(ctx, "agents", listed.agents, listed.next_cursor, listed.total)


def _tasks(tx: Reader, ctx: Ctx, filters: Mapping[str, Any], page: ReadPage) -> ReadResult:
    chosen = board.TaskFilter(**_parse(TaskFilters, filters).model_dump(), since=page.since)
    listed = board.page(tx, ctx.caller, chosen, page.limit, page.cursor)
    return _result(ctx, "tasks", listed.tasks, listed.next_cursor)


_READERS: Mapping[str, Callable[[Reader, Ctx, Mapping[str, Any], ReadPage], ReadResult]] = {
    "contexts": _contexts,
    "sessions": _sessions,
    "projects": _projects,
    "teams": _teams,
    "agents": _agents,
    "tasks": _tasks,
}


def _result(
    ctx: Ctx, resource_type: str, rows: Sequence[BaseModel], following: str | None, total: int | None = None
) -> ReadResult:
    return ReadResult(
        resource_type=resource_type,
        access_level=ctx.caller.access,
        data=[row.model_dump(mode="json") for row in rows],
        count=len(rows),
        total=total,
        next_cursor=following,
    )


def _parse(model: type[F], filters: Mapping[str, Any]) -> F:
    try:
        return model.model_validate(dict(filters))
    except ValidationError as error:
        problems = problems_of(error, "filters")
        known = ", ".join(model.model_fields)
        raise BadInput(
            "INVALID_ARGUMENTS", f"{first_problems(problems)}. The filters are {known}.", problems=problems
        ) from None


def _unknown(resource_type: str, known: Sequence[str] | Mapping[str, Any]) -> BadInput:
    return BadInput(
        "BAD_RESOURCE_TYPE",
        f"There is no resource type {resource_type!r} here. Use one of: {', '.join(known)}.",
        known=list(known),
    )


def _micros(since: datetime | int | None) -> int | None:
    return (since - _EPOCH) // timedelta(microseconds=1) if isinstance(since, datetime) else since
