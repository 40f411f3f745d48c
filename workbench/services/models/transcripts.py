"""The transcripts of attempts: what their programs and models said to each other, each message once, without secrets.

Who asks is known by the attempt's token; what a program says of its conversations only groups within the attempt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from pydantic import Field

from workbench.model import Int64, Level, Micros, Wire
from workbench.ops import Ctx, op
from workbench.ops.parameters import TaskId
from workbench.rules.models import transcript as rules
from workbench.rules.models.transcript import Message
from workbench.store.base import Reader, Row, Tx
from workbench.store.queries import beside

SQL = beside(__file__)
PAGE = 500
"""How many messages are read at a time."""
LEFT_OUT = {"role": "note", "parts": [{"text": "The rest is left out: the setting max_transcript_bytes."}]}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer, as they were sent.

    Args:
        session: see `session_of`.
        answer: as far as it came.
    """

    provider: str
    session: str
    request: bytes
    answer: bytes
    is_stream: bool


async def record(ctx: Ctx, task_id: int, attempt: int, exchange: Exchange) -> None:
    """Record what of an exchange is new in its attempt.

    Raises:
        WorkbenchError: an error of the store.
    """
    messages = await asyncio.to_thread(_masked, ctx, exchange)
    begin = rules.root(str(task_id), str(attempt), exchange.provider, exchange.session)
    most = ctx.settings.max_transcript_bytes
    await ctx.write(lambda tx: append(tx, task_id, attempt, begin, messages, most), durable=False)


def _masked(ctx: Ctx, exchange: Exchange) -> list[Message]:
    """The messages of an exchange without secrets. Blocks."""
    said = rules.of_request(exchange.provider, exchange.request)
    answer = rules.of_answer(exchange.provider, exchange.answer, is_stream=exchange.is_stream)
    return [ctx.secrets.masked(message) for message in rules.each_once([*said, *([answer] if answer else ())])]


def append(
    tx: Tx,
    task_id: int,
    attempt: int,
    chain: str | None,
    messages: Sequence[Message],
    most: int,
    nodes: Sequence[str] = (),
) -> str:
    """Add messages without secrets, each once.

    Args:
        chain: the node that they follow; None: the last one of the attempt.
        most: how many bytes the transcript may have.
        nodes: their own, by which they are known; otherwise these follow from the chain and what they say.

    Returns:
        The node that they end with.
    """
    about = {"task_id": task_id, "attempt": attempt}
    if chain is None:
        last = tx.one(SQL.last, about)
        chain = last["node"] if last else rules.root(str(task_id), str(attempt))
    row = tx.one(SQL.size, about)
    size: int = row["bytes"] if row else 0
    for number, message in enumerate(messages):
        node = nodes[number] if nodes else rules.node(chain, message)
        if tx.one(SQL.has, about, node=node) is None:
            role, content = map(_storable, (message["role"], json.dumps(message["parts"], ensure_ascii=False)))
            length = len(content.encode())
            if size + length > most:
                _add_note(tx, about, chain)
                return chain
            size += length
            values = {"chain": chain, "node": node, "at": tx.now, "role": role, "content": content, "bytes": length}
            tx.run(SQL.add, about | values)
        chain = node
    return chain


def _storable(text: str) -> str:
    """A text that every store takes: programs cut texts within a character, too."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def _add_note(tx: Tx, about: dict[str, int], chain: str) -> None:
    """Say, once, that the rest is left out."""
    values = {"chain": chain, "node": "left out", "at": tx.now, "role": LEFT_OUT["role"], "bytes": 0}
    tx.run(SQL.add, about | values, content=json.dumps(LEFT_OUT["parts"]))


class TranscriptMessage(Wire):
    """A message. `chain` and `node`: what it follows, and what follows it; parts: text, thinking, tool_call, …."""

    id: int
    chain: str
    node: str
    at: Micros
    role: str
    parts: list[dict[str, Any]]


class AttemptTranscript(Wire):
    """Messages in the order in which they were first sent. `next_after`: for the next page; null: there is none."""

    task_id: int
    attempt: int | None
    messages: list[TranscriptMessage]
    next_after: int | None


@op(allow=Level.OPERATOR, reads=True, tool=False, command="transcript")
async def get_transcript(
    ctx: Ctx,
    task_id: TaskId,
    attempt: Annotated[
        Int64 | None, Field(ge=1, description="The attempt; default: that of `after`, or the last.")
    ] = None,
    containing: Annotated[str, Field(max_length=1_000, description="Only messages that contain this text.")] = "",
    after: Annotated[Int64, Field(ge=0, description="Only messages after this id.")] = 0,
    before: Annotated[Int64 | None, Field(ge=1, description="The last messages before this id instead.")] = None,
    limit: Annotated[int, Field(ge=1, le=10_000, description="At most so many messages.")] = 1_000,
) -> AttemptTranscript:
    """Get what an attempt's program and the model said to each other by way of this server, each message once."""

    def question(tx: Reader) -> AttemptTranscript:
        rows = list(islice(_containing(tx, containing, task_id, attempt, after, before), limit))
        next_after = rows[-1]["id"] if len(rows) == limit and before is None else None
        if before is not None:
            rows.reverse()
        messages = [
            TranscriptMessage(
                **{name: row[name] for name in ("id", "chain", "node", "at", "role")}, parts=json.loads(row["content"])
            )
            for row in rows
        ]
        which = rows[0]["attempt"] if rows else attempt
        return AttemptTranscript(task_id=task_id, attempt=which, messages=messages, next_after=next_after)

    return await ctx.read(question)


def _containing(
    tx: Reader, text: str, task_id: int, attempt: int | None, after: int, before: int | None
) -> Iterator[Row]:
    """The messages that contain a text: forward from an id, or backward from the one `before`; read page by page."""
    wanted = json.dumps(text, ensure_ascii=False)[1:-1].lower()  # as it is written there
    which = {"task_id": task_id, "attempt": attempt, "limit": PAGE}
    while True:
        query = SQL.before if before is not None else SQL.after
        rows = tx.all(query, which, id=after if before is None else before)
        yield from (row for row in rows if wanted in row["content"].lower())
        if len(rows) < PAGE:
            return
        after, before = rows[-1]["id"], None if before is None else rows[-1]["id"]
