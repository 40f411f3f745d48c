"""The frames of conversations: numbered pieces of the answers, which are stored before anyone gets them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Conflict
from workbench.model import LARGEST_INT, Level, Micros, Wire
from workbench.ops import Ctx, RestRoute, op
from workbench.rules.chat.transcript import FrameKind
from workbench.services.conversations.conversation import ConversationId, require_conversation
from workbench.store.base import Reader, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
POLL_SECONDS = 0.1
"""How often the store is read for frames that another process writes."""


class ChatFrame(Wire):
    """A frame. `data` has the fields of the message of this type that /ws/chat sends.

    `message`: the person asked something (content). `token`, `thinking`: a piece of text (content). `retry`: the
    provider failed and is asked again. `compacted` (message): the conversation was too long. `tool_start` (call_id,
    tool_name, tool_input, source), `tool_waiting` (approval_id), `tool_progress` (progress, total, message),
    `tool_complete` (tool_result, is_error): the call of a tool. `complete` and `error` (code, message) end an answer.
    """

    number: int
    turn_id: str
    type: FrameKind
    data: dict[str, Any]
    at: Micros


class Frames(Wire):
    """Frames, oldest first. For the next ones pass `next_after` as `after`. `answer_id`: the answer being made."""

    frames: list[ChatFrame]
    next_after: int
    answer_id: str | None


@dataclass(frozen=True, slots=True)
class NewFrame:
    """A frame that is to be stored."""

    kind: FrameKind
    data: Mapping[str, Any]


@op(allow=Level.OPERATOR, reads=True, tool=False, rest=RestRoute("GET", "/conversations/{conversation_id}/frames"))
async def read_frames(
    ctx: Ctx,
    conversation_id: ConversationId,
    after: Annotated[
        int,
        Field(ge=0, le=LARGEST_INT, description="Only frames with a larger number; see last_frame of list_turns."),
    ] = 0,
    limit: Annotated[int, Field(ge=1, le=10_000, description="At most this many.")] = 1_000,
    wait_seconds: Annotated[float, Field(ge=0, description="How long to wait for a first frame.")] = 0,
) -> Frames:
    """Read what has come of a conversation after a frame; if there is nothing yet, wait for it.

    Frames are numbered without gaps, so that a reader which lost its connection continues where it was.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(wait_seconds, ctx.settings.wait_limit_seconds)
    with ctx.local.answers.news(conversation_id) as news:
        while True:
            news.clear()
            page = await ctx.read(lambda tx: _page(tx, conversation_id, after, limit))
            seconds = deadline - loop.time()
            if page.frames or seconds <= 0:
                return page
            await _wait(news, seconds if ctx.local.server is not None else min(seconds, POLL_SECONDS))


async def _wait(news: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return


def _page(tx: Reader, conversation_id: str, after: int, limit: int) -> Frames:
    conversation = require_conversation(tx, conversation_id)
    rows = tx.all(SQL.after, conversation=conversation_id, after=after, limit=limit)
    frames = [
        ChatFrame(
            number=row["number"],
            turn_id=row["turn_id"],
            type=row["kind"],
            data=json.loads(row["data"]),
            at=row["at"],
        )
        for row in rows
    ]
    return Frames(frames=frames, next_after=frames[-1].number if frames else after, answer_id=conversation.answer_id)


def of_turn(tx: Reader, turn_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The frames of a turn, oldest first: kind and data."""
    for row in tx.all(SQL.of_turn, turn=turn_id):
        yield row["kind"], json.loads(row["data"])


def append(tx: Tx, conversation_id: str, turn_id: str, new: Sequence[NewFrame]) -> None:
    """Store frames of an answer that is being made.

    Raises:
        Conflict: ``ANSWER_ENDED``: it has ended meanwhile, or its conversation was deleted.
    """
    if tx.one(SQL.is_running, turn=turn_id) is None:
        raise Conflict("ANSWER_ENDED", "The answer has ended. Read its conversation again.")
    add(tx, conversation_id, turn_id, new)


def add(tx: Tx, conversation_id: str, turn_id: str, new: Sequence[NewFrame]) -> None:
    """Store frames of a conversation, which must exist."""
    row = tx.one(SQL.count, conversation=conversation_id, count=len(new))
    assert row is not None
    about = {"conversation": conversation_id, "turn": turn_id, "now": tx.now}
    first = int(row["frames"]) - len(new) + 1
    tx.many(
        SQL.add,
        [
            about | {"number": first + n, "kind": frame.kind, "data": json.dumps(frame.data)}
            for n, frame in enumerate(new)
        ],
    )
