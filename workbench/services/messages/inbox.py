"""Messages to agents, and comments on tasks, which are messages to whoever does the task.

A message is queued when it is stored, seen when its agent has it, and acted on when the agent says so, or completes the
attempt in which it had it.
"""

from __future__ import annotations

import json
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from workbench.errors import BadInput, Conflict, Hint, NotFound, Refused, TooMany
from workbench.model import LARGEST_INT, SECOND, Int64, Level, Micros, Wire
from workbench.ops import Caller, Columns, Command, Ctx, op
from workbench.ops.parameters import TaskId
from workbench.present.inert import inert
from workbench.rules import access
from workbench.services.access.authentication import SUPERVISED
from workbench.services.agents.rows import agent_by_uid, no_agent, require_agent, session_of
from workbench.services.approvals import person_of
from workbench.state.settings import Settings
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)

AT_ONCE = 20
"""Messages that an agent gets at once; the next ones come with its next call."""
MINUTE = 60 * SECOND

LISTED = Command("messages", names={"agent": "agent_id", "task": "task_id"})

Body = Annotated[str, Field(min_length=1, description="What to tell.")]
MessageKind = Literal["message", "comment", "question", "answer"]


class Message(Wire):
    """What one participant told another.

    `sender` and `agent_id`, the recipient, are agents or people; the recipient is null while nobody does the task that
    a comment is about. `state`: queued, seen or acted. A question of an agent has its approval in the inbox.
    `interrupts`: the agent's turn is ended for it.
    """

    id: int
    kind: MessageKind
    sender: str
    agent_id: str | None
    task_id: int | None
    attempt: int | None
    text: str
    state: Literal["queued", "seen", "acted"]
    approval_id: int | None
    interrupts: bool
    sent_at: Micros
    seen_at: Micros | None
    acted_at: Micros | None


class MessagePage(Wire):
    """Messages, the newest first."""

    SHOWN: ClassVar = Columns(
        "messages", "id kind sender=from agent_id=to task_id=task text state sent_at=at", "There are no messages."
    )

    messages: list[Message]


class Inbox(Wire):
    """What an agent has not acted on, oldest first, and which of `acted` it had not acted on before."""

    messages: list[Message]
    acted: list[int]


@op(
    allow=Level.WORKER,
    command=Command("tell AGENT_ID TEXT", "Message {id} to {agent_id} is queued."),
)
async def tell(
    ctx: Ctx,
    agent_id: Annotated[str, Field(description="See list_agents.")],
    text: Body,
    interrupt: Annotated[bool, Field(description="End its turn.")] = False,
) -> Message:
    """Tell an agent of your session, or one you spawned."""
    words = _bounded(ctx, text)
    if interrupt and ctx.caller.level < Level.PLANNER:
        raise Refused("FORBIDDEN", "You may not end the turn of another agent. Tell it without interrupt.")

    def change(tx: Tx) -> Message:
        agent = _reachable(tx, ctx.caller, agent_id)
        if interrupt and not json.loads(agent["capabilities"]).get(SUPERVISED):
            reason = f"Nobody can end a turn of {agent_id}: Workbench has not started its program."
            raise Conflict("NOT_SUPERVISED", f"{reason} Tell it without interrupt.")
        _require_room(tx, ctx, agent["id"])
        return send(tx, ctx, "message", words, agent["id"], interrupts=interrupt)

    return await ctx.write(change)


@op(
    allow=Level.OPERATOR,
    tool=False,
    command=Command("comment TASK_ID TEXT", "Comment {id} is kept with the task, for whoever does it."),
)
async def comment_on_task(ctx: Ctx, task_id: TaskId, text: Body) -> Message:
    """Comment on a task: its agent gets the comment, and so does everyone who does the task later."""
    words = _bounded(ctx, text)

    def change(tx: Tx) -> Message:
        task = tx.one(SQL.task, id=task_id)
        if task is None:
            raise NotFound("TASK_NOT_FOUND", f"There is no task {task_id}.", Hint("list_tasks"))
        if task["holder"]:
            _require_room(tx, ctx, task["holder"])
        return send(tx, ctx, "comment", words, task["holder"], task_id)

    return await ctx.write(change)


@op(allow=Level.OPERATOR, reads=True, tool=False, command=LISTED, refreshed_by="message agent")
async def list_messages(
    ctx: Ctx,
    agent_id: Annotated[str | None, Field(description="Only from or to this agent.")] = None,
    task_id: Annotated[Int64 | None, Field(description="Only about this task.")] = None,
    before: Annotated[Int64, Field(ge=0, description="Only those older than the message with this id; 0: all.")] = 0,
    limit: Annotated[int, Field(ge=1, le=500, description="At most this many.")] = 100,
) -> MessagePage:
    """List what was told: messages to agents, comments on tasks, questions of agents and answers, the newest first."""

    def query(tx: Reader) -> list[Row]:
        agent = require_agent(tx, agent_id)["id"] if agent_id is not None else None
        return tx.all(SQL.list, agent=agent, task_id=task_id, before=before or LARGEST_INT, limit=limit)

    return MessagePage(messages=[message_of(row) for row in await ctx.read(query)])


@op(allow=Level.WORKER)
async def read_messages(
    ctx: Ctx,
    acted: Annotated[list[Int64], Field(max_length=1_000, description="Those you acted on.")] = [],
    wait_seconds: Annotated[float, Field(ge=0, description="Wait for one.")] = 0,
) -> Inbox:
    """Read messages, until you acted on them."""
    me = _own(ctx.caller)

    def change(tx: Tx) -> Inbox:
        done = [
            row["id"] for number in dict.fromkeys(acted) for row in tx.all(SQL.act, id=number, agent=me, now=tx.now)
        ]
        _emit_acted(tx, me, done)
        mark_seen(tx, me, queued(tx, me))
        return Inbox(messages=[message_of(row) for row in tx.all(SQL.open, agent=me, limit=AT_ONCE)], acted=done)

    if wait_seconds and not acted:
        await ctx.feed.until(
            lambda tx: bool(queued(tx, me)),
            bool,
            "message.sent",
            subject=f"agent:{me}",
            seconds=min(wait_seconds, ctx.settings.wait_limit_seconds),
        )
    return await ctx.write(change)


def send(
    tx: Tx,
    ctx: Ctx,
    kind: MessageKind,
    text: str,
    agent: str | None,
    task_id: int | None = None,
    attempt: int | None = None,
    approval_id: int | None = None,
    *,
    interrupts: bool = False,
) -> Message:
    """Store a message of the caller; its recipient learns of it at once.

    Args:
        agent: the recipient's `agents.id`; None: the person, or whoever does the task next.
    """
    sender = {"sender": person_of(ctx) or ctx.caller.name, "sender_id": ctx.caller.agent}
    about = {"agent": agent, "task_id": task_id, "attempt": attempt, "approval_id": approval_id}
    about |= {"interrupts": int(interrupts)}
    row = tx.one(SQL.add, sender | about, kind=kind, body=text, now=tx.now)
    assert row is not None
    session = session_of(tx, agent or ctx.caller.agent or "")
    subject, about = f"agent:{agent}" if agent else f"message:{row['id']}", {"kind": kind, "task_id": task_id}
    tx.emit("message.sent", subject, session=session, messages=[row["id"]], **about)
    return get(tx, row["id"])


def get(tx: Reader, message_id: int) -> Message:
    """A message, which exists."""
    row = tx.one(SQL.get, id=message_id)
    assert row is not None, "the message exists"
    return message_of(row)


def queued(tx: Reader, agent: str, after: int = 0, limit: int = AT_ONCE) -> list[Message]:
    """The messages that an agent (`agents.id`) has not seen, oldest first."""
    return [message_of(row) for row in tx.all(SQL.queued, agent=agent, after=after, limit=limit)]


def mark_seen(tx: Tx, agent: str, messages: list[Message]) -> list[Message]:
    """Record that an agent has these messages."""
    for message in messages:
        tx.run(SQL.see, id=message.id, now=tx.now)
    if messages:
        ids = [message.id for message in messages]
        tx.emit("message.seen", f"agent:{agent}", session=session_of(tx, agent), messages=ids)
    return messages


def of_assignment(tx: Tx, agent: str, task_id: int) -> list[Message]:
    """What an agent is told with a task: the comments on it, and what was told to the agent itself, oldest first."""
    tx.run(SQL.take_comments, task_id=task_id, agent=agent)
    mark_seen(tx, agent, queued(tx, agent))
    rows = tx.all(SQL.of_assignment, task_id=task_id, agent=agent, limit=AT_ONCE)
    return [message_of(row) for row in reversed(rows)]


def reaches(tx: Reader, agent: str) -> bool:
    """Whether an agent (`agents.id`) has not ended, and can be told something."""
    row = agent_by_uid(tx, agent)
    return row["registration_status"] not in access.TURNED_AWAY and not tx.one(SQL.has_ended, agent=agent)


def note_completion(tx: Tx, agent: str) -> None:
    """Record that an agent acted on what it had seen: it has completed an attempt in which it was told of it."""
    _emit_acted(tx, agent, [row["id"] for row in tx.all(SQL.act_on_seen, agent=agent, now=tx.now)])


def message_of(row: Row) -> Message:
    """A message from its row."""
    state = "acted" if row["acted_at"] is not None else "seen" if row["seen_at"] is not None else "queued"
    return Message(**{**{name: row[name] for name in row if name in Message.model_fields}, "state": state})


def masked(ctx: Ctx, text: str, limit: int) -> str:
    """A text of a message, without secrets.

    Raises:
        BadInput: ``INVALID_ARGUMENTS``, ``TOO_LARGE``.
    """
    if not text.strip():
        raise BadInput("INVALID_ARGUMENTS", "The text is empty.", problems=[])
    if (size := len(text.encode())) > limit:
        hint = "Put it into a file, and tell where that is."
        raise BadInput("TOO_LARGE", f"The text has {size:,} bytes; at most {limit:,} are sent. {hint}")
    without: str = ctx.secrets.masked(text)
    return without


def require_pace(tx: Reader, settings: Settings, caller: Caller) -> None:
    """Refuse an agent that sends too much.

    Raises:
        TooMany: ``TOO_MANY_MESSAGES``.
    """
    if caller.agent is None:
        return
    row = tx.one(SQL.sent_since, agent=caller.agent, since=tx.now - MINUTE)
    if row and row["n"] >= settings.max_messages_per_minute:
        text = f"You may send {settings.max_messages_per_minute} messages in a minute. Say more in one, later."
        raise TooMany("TOO_MANY_MESSAGES", text, retry_after_seconds=60)


def _bounded(ctx: Ctx, text: str) -> str:
    return inert(masked(ctx, text, ctx.settings.max_message_bytes))


def _own(caller: Caller) -> str:
    if caller.agent is None:
        raise BadInput("AGENT_ONLY", "Only an agent has an inbox of messages. Call this with an agent's token.")
    return caller.agent


def _reachable(tx: Reader, caller: Caller, agent_id: str) -> Row:
    """The row of an agent that the caller may tell something.

    Raises:
        NotFound: ``AGENT_NOT_FOUND``. BadInput: ``OWN_MESSAGE``. Conflict: ``AGENT_ENDED``.
    """
    agent = require_agent(tx, agent_id)
    if agent["id"] == caller.agent:
        raise BadInput("OWN_MESSAGE", "You cannot tell yourself something. Tell another agent, or report progress.")
    in_session = caller.session is not None and agent["session_id"] == caller.session
    spawned = caller.level >= Level.PLANNER and agent["parent_agent_id"] == caller.agent
    if caller.level is not Level.OPERATOR and not (in_session or spawned):
        raise no_agent(agent_id)
    if not reaches(tx, agent["id"]):
        raise Conflict("AGENT_ENDED", f"{agent_id} has ended: nothing reaches it.", Hint("list_agents"))
    return agent


def _require_room(tx: Reader, ctx: Ctx, agent: str) -> None:
    """Refuse a message to an agent whose inbox is full, or of one that sends too much.

    Raises:
        Conflict: ``INBOX_FULL``. TooMany: ``TOO_MANY_MESSAGES``.
    """
    require_pace(tx, ctx.settings, ctx.caller)
    most = ctx.settings.max_open_messages
    row = tx.one(SQL.count_open, agent=agent)
    if row and row["n"] >= most:
        raise Conflict("INBOX_FULL", f"Its {most} newest messages are not acted on yet. Wait until it has.", limit=most)


def _emit_acted(tx: Tx, agent: str, ids: list[int]) -> None:
    if ids:
        tx.emit("message.acted", f"agent:{agent}", session=session_of(tx, agent), messages=ids)
