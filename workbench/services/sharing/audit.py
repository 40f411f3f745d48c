"""The history of an agent: what happened to it and what changed, who did it and why, by names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from workbench.model import LARGEST_INT, FeedEvent, Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.services.agents.directory import visible_agent
from workbench.services.agents.rows import no_agent, require_agent
from workbench.services.sharing.events import may_see
from workbench.store.base import Reader
from workbench.store.feed import event
from workbench.store.queries import beside

SQL = beside(__file__)

_FIELDS = {
    "agent_id": "id",
    "assigned_agent_id": "id",
    "name": "name",
    "session_id": "session",
    "team_id": "team",
    "persona_id": "persona",
    "role": "role",
    "tool": "tool",
    "access_level": "access level",
    "expires_at": "expiry",
    "definition_id": "definition",
    "self_tools": "own definition",
    "may_define": "manages definitions",
    "tools": "tools",
}
"""The fields of a grant, as people call them."""
_NAMED = ("session_id", "team_id", "definition_id")
_SHOWN = ("transport", "profile", "pid", "exit_code", "error", "code")


class HistoryChange(Wire):
    """A value that an event changed; null: none."""

    field: str
    old: str | None
    new: str | None


class HistoryEntry(Wire):
    """An event in the history of an agent. `details` has facts that are not changes, such as an exit code."""

    id: int
    at: Micros
    kind: str
    actor: str
    reason: str | None
    changes: list[HistoryChange]
    details: dict[str, Any]


class AgentHistory(Wire):
    """The history of an agent, newest first. For the next page pass `next_before` as `before`, until it is null."""

    agent_id: str
    entries: list[HistoryEntry]
    next_before: int | None


@op(allow=Level.READ, reads=True, tool=False, command="history")
async def get_agent_history(
    ctx: Ctx,
    agent_id: Annotated[str, Field(description="Its id, or for the operator a former one, also of a deleted agent.")],
    limit: Annotated[int, Field(ge=1, le=1_000, description="At most this many.")] = 100,
    before: Annotated[int | None, Field(ge=0, le=LARGEST_INT, description="Only entries with a smaller id.")] = None,
) -> AgentHistory:
    """Get what happened to an agent, newest first: what changed from what to what, who did it and why, by names."""

    def question(tx: Reader) -> AgentHistory:
        subject = f"agent:{_uid(tx, ctx, agent_id)}"
        rows = tx.all(SQL.newest, subject=subject, before=LARGEST_INT if before is None else before, limit=limit)
        events = [event(row) for row in rows]
        names = _names(tx, events)
        entries = [_entry(feed_event, names) for feed_event in events if may_see(ctx.caller, feed_event)]
        return AgentHistory(
            agent_id=agent_id, entries=entries, next_before=events[-1].id if len(events) == limit else None
        )

    return await ctx.read(question)


def _uid(tx: Reader, ctx: Ctx, agent_id: str) -> str:
    if ctx.caller.level is not Level.OPERATOR:
        visible_agent(tx, ctx, agent_id)
        return str(require_agent(tx, agent_id)["id"])
    row = tx.one(SQL.of_any_name, agent_id=agent_id)
    if row is None:
        raise no_agent(agent_id)
    return str(row["id"])


def _entry(event: FeedEvent, names: Mapping[str, str]) -> HistoryEntry:
    old, new = _values(event)
    changes = [
        HistoryChange(field=label, old=_name(field, old.get(field), names), new=_name(field, new.get(field), names))
        for field, label in _FIELDS.items()
        if field in new
    ]
    details = {key: event.data[key] for key in _SHOWN if event.data.get(key) is not None}
    return HistoryEntry(
        id=event.id,
        at=event.at,
        kind=event.kind,
        actor=event.actor,
        reason=event.data.get("reason") or None,
        changes=changes,
        details=details,
    )


def _values(event: FeedEvent) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What an event changed: the values before and after it, by field."""
    old: dict[str, Any] = event.data.get("before", {})
    if event.kind == "agent.updated":
        return old, event.data["changes"]
    if event.kind == "agent.assigned":
        return old, event.data  # before it, the agent had no id of its own
    return {}, {}


def _names(tx: Reader, events: Sequence[FeedEvent]) -> dict[str, str]:
    """The present names of the sessions, teams and definitions in events, by id."""
    values = (part.get(field) for event in events for part in _values(event) for field in _NAMED)
    ids = sorted({value for value in values if value})
    return {row["id"]: row["name"] for row in tx.all(SQL.names, ids=json.dumps(ids))} if ids else {}


def _name(field: str, value: Any, names: Mapping[str, str]) -> str | None:
    if field == "may_define":
        return "yes" if value else "no"
    if field == "tools":
        return ", ".join(json.loads(value or "[]")) or None
    return None if value is None else names.get(value, str(value))
