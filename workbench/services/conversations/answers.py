"""Asking: a question is put, its answer is begun, stopped, and retried."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.errors import BadInput, Conflict, Hint
from workbench.model import Level, Wire
from workbench.ops import Command, Ctx, RestRoute, op
from workbench.rules.chat.limits import require_left
from workbench.rules.chat.transcript import FrameKind
from workbench.services.conversations import ending, frames, run, turns
from workbench.services.conversations.conversation import (
    SQL,
    ConversationId,
    ConversationInfo,
    require_conversation,
    spent,
)
from workbench.services.conversations.frames import NewFrame
from workbench.services.conversations.turns import TurnInfo
from workbench.state.machine import on_another
from workbench.store.base import Tx

TITLE_LENGTH = 60

Content = Annotated[str, Field(min_length=1, max_length=200_000, description="What you write, in Markdown.")]


class Stopped(Wire):
    """The last turn of the conversation, null if it has none."""

    turn: TurnInfo | None


class Exchange(Wire):
    """A turn of yours, and its answer, which is being made; read_frames follows it."""

    turn: TurnInfo
    answer: TurnInfo


@op(
    allow=Level.OPERATOR,
    needs_server=True,
    tool=False,
    rest=RestRoute("POST", "/conversations/{conversation_id}/turns"),
)
async def ask(ctx: Ctx, conversation_id: ConversationId, content: Content) -> Exchange:
    """Ask something in a conversation; its answer is begun. read_frames follows the answer, stop_answer stops it.

    What keeps the answer from being made, such as a key that is missing, ends it with a code; retry_answer tries again.
    """
    if not content.strip():
        raise BadInput("INVALID_ARGUMENTS", "The message is empty.", problems=[])
    return await ctx.local.repositories.shielded(_ask(ctx, conversation_id, content))


@op(
    allow=Level.OPERATOR,
    needs_server=True,
    tool=False,
    command=Command("conversations stop CONVERSATION", "No answer is being made now."),
    rest=RestRoute("POST", "/conversations/{conversation_id}/stop"),
)
async def stop_answer(ctx: Ctx, conversation_id: ConversationId) -> Stopped:
    """Stop the answer that is being made, with the tools that it runs; what has come of it stays.

    If no answer is being made, nothing changes.
    """
    await ctx.local.answers.stop(conversation_id)

    def change(tx: Tx) -> Stopped:
        require_conversation(tx, conversation_id)
        ending.settle_lost(tx, ctx, conversation_id)
        turn = turns.last_turn(tx, conversation_id)
        if turn is not None and turn.state == "running" and (machine := ending.machine_of(tx, ctx, conversation_id)):
            raise on_another(machine, f"The answer in the conversation {conversation_id}")
        return Stopped(turn=turn)

    return await ctx.write(change)


@op(
    allow=Level.OPERATOR,
    needs_server=True,
    tool=False,
    command="conversations retry",
    rest=RestRoute("POST", "/conversations/{conversation_id}/retry"),
)
async def retry_answer(
    ctx: Ctx,
    conversation_id: ConversationId,
    turn_id: Annotated[
        str | None,
        Field(description="The answer to replace, if it still is the last turn; null: whichever that is."),
    ] = None,
) -> TurnInfo:
    """Ask the last question again. The new answer replaces the last one, which list_turns with `replaced` shows."""
    return await ctx.local.repositories.shielded(_retry(ctx, conversation_id, turn_id))


async def _ask(ctx: Ctx, conversation_id: str, content: str) -> Exchange:
    def change(tx: Tx) -> Exchange:
        _require_ready(require_conversation(tx, conversation_id))
        turn_id = turns.add(tx, conversation_id, "user", content)
        frames.add(tx, conversation_id, turn_id, [NewFrame(FrameKind.MESSAGE, {"content": content})])
        tx.emit("turn.sent", f"conversation:{conversation_id}", turn_id=turn_id)
        answer = _begin(tx, ctx, conversation_id, _title(content))
        return Exchange(turn=turns.require_turn(tx, turn_id), answer=answer)

    with ctx.local.answers.beginning(conversation_id):
        exchange = await ctx.write(change)
        run.start(ctx, conversation_id, exchange.answer.id)
    ctx.local.answers.wake(conversation_id)
    return exchange


async def _retry(ctx: Ctx, conversation_id: str, turn_id: str | None) -> TurnInfo:
    def change(tx: Tx) -> TurnInfo:
        _require_ready(require_conversation(tx, conversation_id))
        last = turns.last_turn(tx, conversation_id)
        if last is None or turn_id not in (None, last.id):
            raise Conflict("NOTHING_TO_RETRY", "This is not the last turn of the conversation. Read it again.")
        replaces = last.id if last.role == "assistant" else None
        if replaces:
            tx.run(turns.SQL.replace, id=replaces, now=tx.now)
        return _begin(tx, ctx, conversation_id, "", replaces)

    with ctx.local.answers.beginning(conversation_id):
        answer = await ctx.write(change)
        run.start(ctx, conversation_id, answer.id)
    return answer


def _begin(tx: Tx, ctx: Ctx, conversation_id: str, title: str, replaces: str | None = None) -> TurnInfo:
    """Add an answer that is running.

    Args:
        title: that of the conversation, if it has none.
        replaces: the id of the answer whose place it takes.
    """
    assert ctx.local.server is not None
    answer = turns.add(tx, conversation_id, "assistant", "", ctx.local.server.nonce)
    tx.run(SQL.touch, id=conversation_id, title=title, now=tx.now)
    about = {"turn_id": answer, **({"replaces": replaces} if replaces else {})}
    tx.emit("answer.started", f"conversation:{conversation_id}", **about)
    return turns.require_turn(tx, answer)


def _require_ready(conversation: ConversationInfo) -> None:
    """Refuse another answer while one is being made, and beyond the conversation's limits.

    Raises:
        Conflict: ``ANSWER_RUNNING``, ``CHAT_LIMIT``.
    """
    if conversation.answer_id is not None:
        raise Conflict(
            "ANSWER_RUNNING",
            "An answer is being made in this conversation.",
            Hint("stop_answer", "Wait for it, or stop it with {}."),
            turn_id=conversation.answer_id,
        )
    require_left(conversation.limits, spent(conversation.usage))


def _title(content: str) -> str:
    """The title of a conversation that begins with a question: its first line, as far as there is room."""
    line = content.strip().splitlines()[0]
    return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1].rstrip()}…"
