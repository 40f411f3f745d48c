"""Events that are visible to the caller: those after a cursor, and the newest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple

from pydantic import Field

from workbench.model import LARGEST_INT, Access, FeedEvent, Int64, Level, Wire
from workbench.ops import Caller, Ctx, op
from workbench.services.agents.rows import require_agent
from workbench.store.base import Reader
from workbench.store.feed import PAGE, event, events_after, last_event_id, matches
from workbench.store.queries import beside
from workbench.store.rolled_up import require_kept

SQL = beside(__file__)

Kinds = Annotated[list[str], Field(max_length=50, description="`*`, `<noun>.*` or kinds, such as task.completed.")]
Subject = Annotated[str | None, Field(description="Only events about this: task:7, or an agent's id.")]

PAGES = 10
"""The most reads of `PAGE` events for one answer."""

_OF_OPERATORS = frozenset({"approval", "gate", "rule", "allowlist", "agent_tool", "conversation", "message", "answer"})
_OWNERS = {"approval": "requester", "gate": "requester", "context": "author", "tool": "requester"}
"""The field of an event's data that names the agent whom it concerns, by the noun of its kind."""
_OF_SESSIONS = frozenset({"agent", "context", "project", "session", "team", "tool"})


class EventPage(Wire):
    """Events, oldest first. For the next page pass `next_after` as `after`, until it stays the same."""

    events: list[FeedEvent]
    next_after: int


class NewestEvents(Wire):
    """The newest events, oldest first. For those before them pass `next_before` as `before`, until it is null."""

    events: list[FeedEvent]
    next_before: int | None


@op(allow=Level.READ, reads=True, command="events")
async def list_events(
    ctx: Ctx,
    after: Annotated[
        Annotated[Int64, Field(ge=0)] | None, Field(description="Only events with a larger id; null: from now on.")
    ] = 0,
    kinds: Kinds = ["*"],
    subject: Subject = None,
    mine: Annotated[bool, Field(description="false: leave out what you did yourself.")] = True,
    limit: Annotated[int, Field(ge=1, le=1_000, description="At most this many.")] = 100,
    wait_seconds: Annotated[float, Field(ge=0, description="How long to wait for a first event.")] = 0,
) -> EventPage:
    """List the events after an event, in order; if there is none yet, wait for one.

    A page may be empty although more follow, because each call searches only a part of a long history.
    """
    start = await ctx.read(last_event_id) if after is None else after
    full_subject = await ctx.read(lambda tx: _subject(tx, subject)) if subject else None

    def is_match(event: FeedEvent) -> bool:
        fits = matches(event.kind, kinds) and full_subject in (None, event.subject)
        return fits and may_see(ctx.caller, event) and (mine or not is_own(ctx.caller, event))

    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(wait_seconds, ctx.settings.wait_limit_seconds)
    with ctx.feed.changed(*kinds, subject=full_subject) as change:
        while True:
            search = await ctx.read(partial(_search, subject=full_subject, start=start, limit=limit, is_match=is_match))
            left = deadline - loop.time()
            if search.events or left <= 0 or (search.is_end and not await change.after(search.last, left)):
                return EventPage(events=search.events, next_after=search.last)
            start = search.last


@op(allow=Level.READ, reads=True, tool=False, command="events")
async def list_newest_events(
    ctx: Ctx,
    kinds: Kinds = ["*"],
    subject: Subject = None,
    limit: Annotated[int, Field(ge=1, le=1_000, description="At most this many.")] = 100,
    before: Annotated[Annotated[Int64, Field(ge=0)] | None, Field(description="Only events with a smaller id.")] = None,
) -> NewestEvents:
    """List the newest events, the newest last.

    A page may be empty although older events match, because each call searches only a part of a long history.
    """

    def question(tx: Reader) -> NewestEvents:
        full_subject = _subject(tx, subject) if subject else None
        events: list[FeedEvent] = []
        oldest, size = LARGEST_INT if before is None else before, limit + 1
        for _ in range(PAGES):
            page = _page_before(tx, full_subject, oldest, size)
            for candidate in page:
                if len(events) == limit:
                    return NewestEvents(events=events[::-1], next_before=oldest)
                oldest = candidate.id
                if matches(candidate.kind, kinds) and may_see(ctx.caller, candidate):
                    events.append(candidate)
            if len(page) < size:
                return NewestEvents(events=events[::-1], next_before=None)
            size = PAGE
        return NewestEvents(events=events[::-1], next_before=oldest)

    return await ctx.read(question)


def may_see(caller: Caller, event: FeedEvent) -> bool:
    """Whether an event is visible to a caller: its own, on what it requested, its team's or session's, or of none."""
    me = f"agent:{caller.agent}"
    if caller.level is Level.OPERATOR or is_own(caller, event) or event.subject == me:
        return True
    noun = event.kind.partition(".")[0]
    if event.data.get(_OWNERS.get(noun, "")) == me:
        return True
    if noun in _OF_SESSIONS:
        return _is_near(caller, event)
    return event.session in (None, caller.session) and noun not in _OF_OPERATORS


def is_own(caller: Caller, event: FeedEvent) -> bool:
    """Whether the caller itself caused an event."""
    return event.actor == caller.name


def _is_near(caller: Caller, event: FeedEvent) -> bool:
    if caller.session is None or event.session != caller.session:
        return False
    if caller.access is Access.SESSION_LEVEL or caller.level is Level.PLANNER:
        return True
    return caller.access is Access.TEAM_LEVEL and event.data.get("team") == caller.team is not None


def _subject(tx: Reader, subject: str) -> str:
    if ":" in subject:
        return subject
    return f"agent:{require_agent(tx, subject)['id']}"


class _Matches(NamedTuple):
    """Matching events, the id of the last event that was read, and whether that was the newest."""

    events: list[FeedEvent]
    last: int
    is_end: bool


def _search(
    tx: Reader, *, subject: str | None, start: int, limit: int, is_match: Callable[[FeedEvent], bool]
) -> _Matches:
    """The next matching events in a part of the history.

    Raises:
        NotFound: ``EVENTS_ROLLED_UP``.
    """
    require_kept(tx, start)
    matching: list[FeedEvent] = []
    last, size = start, limit
    for _ in range(PAGES):
        page = _page(tx, subject, last, size)
        for candidate in page:
            last = candidate.id
            if is_match(candidate):
                matching.append(candidate)
                if len(matching) == limit:
                    return _Matches(matching, last, is_end=False)
        if len(page) < size:
            return _Matches(matching, last, is_end=True)
        size = PAGE
    return _Matches(matching, last, is_end=False)


def _page(tx: Reader, subject: str | None, start: int, limit: int) -> list[FeedEvent]:
    if subject is None:
        return events_after(tx, start, limit)
    return [event(row) for row in tx.all(SQL.about, subject=subject, cursor=start, limit=limit)]


def _page_before(tx: Reader, subject: str | None, before: int, limit: int) -> list[FeedEvent]:
    """Events with a smaller id, newest first."""
    query = SQL.newest if subject is None else SQL.newest_about
    return [event(row) for row in tx.all(query, subject=subject, before=before, limit=limit)]
