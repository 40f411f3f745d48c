"""The feed for those who ask: events after a cursor."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.model import Event, Level, Wire
from workbench.ops import Ctx, op
from workbench.store.feed import events_after, last_event_id, matches

Kinds = Annotated[list[str], Field(max_length=50, description="`*`, `<noun>.*` or kinds, such as task.completed.")]


class Events(Wire):
    """Events, oldest first; ask again with `after` = `next_after`."""

    events: list[Event]
    next_after: int


@op(allow=Level.READ, reads=True)
async def list_events(
    ctx: Ctx,
    after: Annotated[int | None, Field(ge=0, description="Only events with a larger id; null: from now on.")] = 0,
    kinds: Kinds = ["*"],
    limit: Annotated[int, Field(ge=1, le=1_000)] = 100,
    wait_seconds: Annotated[float, Field(ge=0, description="Wait this long for a first event.")] = 0,
) -> Events:
    """What happened after an event, in order; waits for news when there is none yet."""
    start = await ctx.read(last_event_id) if after is None else after
    page = await ctx.read(lambda tx: events_after(tx, start, limit))
    fitting = [e for e in page if matches(e.kind, kinds)]
    last = page[-1].id if page else start
    if fitting or not wait_seconds:
        return Events(events=fitting, next_after=last)
    async with ctx.feed.subscribe(*kinds, after=last) as events:
        found = await events.within(min(wait_seconds, ctx.settings.wait_limit_seconds))
    return Events(events=[found] if found else [], next_after=found.id if found else last)
