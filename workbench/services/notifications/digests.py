"""Digests: what happened that the person wants to know, gathered for a while and told in one message.

A digest is stored in one transaction with the event up to which it goes, so that a restart tells nothing twice and
leaves nothing out. What is no longer so when a digest is made, such as a question that has been answered, is not told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from workbench.model import SECOND, FeedEvent, Level, Micros, Wire
from workbench.ops import SYSTEM, Columns, Command, Ctx, RestRoute, op
from workbench.ops.duties import duty
from workbench.present.inert import inert_line
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.feed import event
from workbench.store.queries import beside

SQL = beside(__file__)

MOST = 50
"""The most items of one digest; of the others, the number is told."""
BEHIND = 1_000
"""By how many events that concern nobody the cursor may lag."""
LONGEST = 300
"""Characters of an item."""
_WORDS: Mapping[str, tuple[str, str]] = {
    "waiting": ("1 question waits for you", "{} questions wait for you"),
    "failed": ("1 task has failed for good", "{} tasks have failed for good"),
    "silent": ("1 agent is silent", "{} agents are silent"),
    "budget": ("1 budget is nearly used", "{} budgets are nearly used"),
    "done": ("1 plan is completed", "{} plans are completed"),
    "schedule": ("1 schedule was not kept", "{} schedules were not kept"),
}


class NotificationItem(Wire):
    """One thing that the person is told. `what` is one of the setting `notify`; `subject` as in events."""

    what: str
    subject: str
    text: str


class Notification(Wire):
    """One message to the person. `left_out` is how many more items there were. `command` and `webhook`: how it got to
    hers, null without one; `error` is why not, for the last of them that failed."""

    id: int
    at: Micros
    sentence: str
    items: list[NotificationItem]
    left_out: int
    command: Literal["waiting", "delivered", "failed"] | None
    webhook: Literal["waiting", "delivered", "failed"] | None
    error_code: str | None
    error: str | None


class Untold(Wire):
    """What was not shown to the person yet, as one message; `sentence` is empty if there is nothing."""

    sentence: str
    items: list[NotificationItem]
    left_out: int


class Notifications(Wire):
    """What the person was told, the newest first."""

    SHOWN: ClassVar = Columns("notifications", "id at sentence command webhook error", "You were told nothing so far.")

    notifications: list[Notification]


@op(
    allow=Level.OPERATOR,
    reads=True,
    tool=False,
    command=Command("notifications"),
    rest=RestRoute("GET", "/notifications", rows="notifications"),
    refreshed_by="notification",
)
async def list_notifications(
    ctx: Ctx, limit: Annotated[int, Field(ge=1, le=1_000, description="How many of the newest.")] = 20
) -> Notifications:
    """List what you were told: the newest first, and whether it got to your command and webhook."""
    rows = await ctx.read(lambda tx: tx.all(SQL.list, limit=limit))
    return Notifications(notifications=[notification(row) for row in rows])


@op(allow=Level.OPERATOR, tool=False)
async def take_notifications(ctx: Ctx) -> Untold:
    """Take what you were not shown yet, as one message, without what is over by now. It is given once."""

    def change(tx: Tx) -> Untold:
        rows = tx.all(SQL.unshown)
        items = {(item.what, item.subject): item for row in rows for item in _stored_items(row)}
        open_items = [item for item in items.values() if _is_open(tx, item)]
        tx.run(SQL.show, now=tx.now)
        for row in rows:
            tx.emit("notification.shown", f"notification:{row['id']}")
        left_out = sum(row["left_out"] for row in rows) + max(0, len(open_items) - MOST)
        return Untold(sentence=_sentence(open_items), items=open_items[:MOST], left_out=left_out)

    if not await ctx.read(lambda tx: tx.all(SQL.unshown)):
        return Untold(sentence="", items=[], left_out=0)
    return await ctx.write(change)


def _stored_items(row: Row) -> list[NotificationItem]:
    return [NotificationItem(**item) for item in json.loads(row["items"])]


def _is_open(tx: Reader, item: NotificationItem) -> bool:
    """Whether what an item says may still be so: a question that was answered is over."""
    read = {"waiting": _waiting, "failed": _failed}.get(item.what)
    return read is None or read(tx, item.subject) is not None


def notification(row: Row) -> Notification:
    """A notification from its row."""
    return Notification(**{**dict(row), "items": json.loads(row["items"])})


@duty("gathering what the person is told", 0.5, once=True)
async def gather(ctx: Ctx) -> None:
    """Make a digest once the first event that the person wants to know of is old enough."""

    def is_due(tx: Reader) -> bool:
        first, place = tx.one(SQL.first, kinds=_kinds(ctx.settings)), tx.one(SQL.place)
        assert place is not None
        if first is None:
            return bool(place["newest"] - place["cursor"] > BEHIND)
        return bool(first["at"] + ctx.settings.notify_digest_seconds * SECOND <= tx.now)

    if await ctx.read(is_due):
        await make(ctx)


async def make(ctx: Ctx) -> None:
    """Make the digest of all events that were not looked at, unless there is nothing to tell."""
    await ctx.of(SYSTEM).write(lambda tx: _tell(tx, ctx.settings))


def _kinds(settings: Settings) -> str:
    return json.dumps([kind for what in settings.notify for kind in _KINDS[what]])


def _tell(tx: Tx, settings: Settings) -> None:
    items = _items(tx, settings, (event(row) for row in tx.all(SQL.events, kinds=_kinds(settings))))
    tx.run(SQL.advance)
    if not items:
        return
    shown = json.dumps([item.model_dump() for item in items[:MOST]])
    about = {"sentence": _sentence(items), "items": shown, "left_out": max(0, len(items) - MOST)}
    row = tx.one(SQL.add, about, now=tx.now, shown=None if settings.notify_panel else tx.now)
    assert row is not None
    channels = {"command": settings.notify_command, "webhook": settings.notify_webhook}
    for channel in (name for name, value in channels.items() if value):
        tx.run(SQL.deliver, id=row["id"], channel=channel, now=tx.now)
    tx.emit("notification.made", f"notification:{row['id']}", items=len(items))


def _items(tx: Reader, settings: Settings, events: Iterable[FeedEvent]) -> list[NotificationItem]:
    """What is to be told of events, each thing once, as it is now."""
    items: dict[tuple[str, str], NotificationItem] = {}
    for happened in events:
        for what in settings.notify:
            if happened.kind in _KINDS[what] and (found := _TELL[what](tx, happened)) is not None:
                subject, text = found
                inert_text = inert_line(text)[:LONGEST]  # agents wrote the titles
                items[what, subject] = NotificationItem(what=what, subject=subject, text=inert_text)
    return sorted(items.values(), key=lambda item: settings.notify.index(item.what))


def _sentence(items: list[NotificationItem]) -> str:
    """A digest in one sentence, such as "2 questions wait for you, 1 plan is completed."."""
    counts: dict[str, int] = {}
    for item in items:
        counts[item.what] = counts.get(item.what, 0) + 1
    if len(items) <= 1:
        return "".join(item.text for item in items)
    return ", ".join(_WORDS[what][count > 1].format(count) for what, count in counts.items()) + "."


def _waiting(tx: Reader, subject: str) -> tuple[str, str] | None:
    row = tx.one(SQL.question, id=int(subject.partition(":")[2]))
    if row is None or row["status"] != "pending":
        return None
    payload = json.loads(row["payload"])
    if row["kind"] == "agent_question":
        return subject, f"Question {row['id']} waits for you: {payload['agent']} asks: {payload['message']}"
    names = (payload.get(key) for key in ("name", "plan", "worktree", "definition", "tool", "what"))
    name = next(filter(None, names), row["subject"].partition(":")[2])
    return subject, f"Question {row['id']} waits for you: {row['kind'].replace('_', ' ')} of {name}."


def _failed(tx: Reader, subject: str) -> tuple[str, str] | None:
    row = tx.one(SQL.task, id=int(subject.partition(":")[2]))
    if row is None or row["status"] != "failed":
        return None
    return subject, f"Task {row['id']} has failed for good: {row['title']}"


def _silent(tx: Reader, happened: FeedEvent) -> tuple[str, str] | None:
    row = tx.one(SQL.silent, agent=happened.data.get("agent_uid"))
    if row is None:
        return None
    return happened.subject, f"Agent {row['name']} is silent, at task {row['task_id']}."


def _budget(tx: Reader, happened: FeedEvent) -> tuple[str, str] | None:
    what = happened.data.get("what", happened.subject.removeprefix("budget:"))  # older events have their subject only
    return happened.subject, f"80 % of the budget of {what} is used."


def _done(tx: Reader, happened: FeedEvent) -> tuple[str, str] | None:
    row = tx.one(SQL.plan, id=int(happened.subject.partition(":")[2]))
    if row is None or row["plan"] is None or row["open"]:
        return None
    count = f"{row['completed']} of {row['tasks']} tasks"
    ended = f"is completed: {count}" if row["completed"] == row["tasks"] else f"has ended: {count} are completed"
    return f"plan:{row['plan']}", f"The plan {row['plan']} {ended}."


def _schedule(tx: Reader, happened: FeedEvent) -> tuple[str, str] | None:
    plan, data = happened.subject.removeprefix("schedule:"), happened.data
    match happened.kind:
        case "schedule.missed":
            return happened.subject, f"The plan {plan} was not carried out when it was due: {data['reason']}."
        case "schedule.started" if data["late_seconds"]:
            minutes = max(1, round(data["late_seconds"] / 60))
            return (
                happened.subject,
                f"The plan {plan} was begun {minutes} min late: no server ran, or the machine slept.",
            )
        case "schedule.ended" if data["status"] != 0:
            return happened.subject, f"The plan {plan}, which was scheduled, has ended: {data['outcome']}"
    return None


_KINDS: Mapping[str, tuple[str, ...]] = {
    "waiting": ("approval.requested",),
    "failed": ("task.failed",),
    "silent": ("agent.silent",),
    "budget": ("budget.nearly",),
    "done": ("task.completed", "task.cancelled"),
    "schedule": ("schedule.missed", "schedule.started", "schedule.ended"),
}
"""The events by which each is noticed."""
_TELL: Mapping[str, Callable[[Reader, FeedEvent], tuple[str, str] | None]] = {
    "waiting": lambda tx, happened: _waiting(tx, happened.subject),
    "failed": lambda tx, happened: _failed(tx, happened.subject),
    "silent": _silent,
    "budget": _budget,
    "done": _done,
    "schedule": _schedule,
}
"""The subject and the text of an item for an event; None: there is nothing to tell any more."""


def message(told: Notification, project: str) -> dict[str, Any]:
    """A notification as the person's command and webhook get it."""
    return {
        "id": told.id,
        "at": told.model_dump(mode="json")["at"],
        "project": project,
        "sentence": told.sentence,
        "items": [item.model_dump() for item in told.items],
        "left_out": told.left_out,
    }
