"""The question for a model: the last turn, and the conversation before it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workbench.providers.answers import extended
from workbench.providers.frames import Frame, History, Token, ToolCompleted, ToolStarted
from workbench.rules.chat.transcript import FrameKind
from workbench.services.conversations import frames
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)


@dataclass(frozen=True, slots=True)
class QuestionExchange:
    """A question of the person, and the frames of its answer."""

    prompt: str
    frames: Sequence[Frame]


@dataclass(frozen=True, slots=True)
class Past:
    """What precedes an answer.

    Args:
        prompt: the question to answer.
        history: the newest history that the engine kept; None if there is none.
        exchanges: those since then, oldest first: their answers were stopped, failed, or were interrupted.
    """

    prompt: str
    history: History | None
    exchanges: Sequence[QuestionExchange]


def past(tx: Reader, conversation_id: str, turn_id: str, *, anew: bool = False) -> Past:
    """What precedes an answer. Answers that were replaced are left out.

    Args:
        anew: without what the engine kept, which another version of it may have written.
    """
    exchanges: list[tuple[str, Row | None]] = []
    for row in tx.all(SQL.before, conversation=conversation_id, turn=turn_id):
        if row["role"] == "user":
            exchanges.append((row["content"], None))
        else:
            exchanges[-1] = (exchanges[-1][0], row)
    *before, (prompt, _) = exchanges
    numbers = [n for n, (_, answer) in enumerate(before) if answer and answer["history"] and not anew]
    first = numbers[-1] if numbers else -1
    history = json.loads(_history(before[first][1])) if numbers else None
    return Past(prompt, history, [_exchange(tx, content, answer) for content, answer in before[first + 1 :]])


async def history_of(context: Past) -> History | None:
    """The conversation before a question, as the engine takes it; None at the beginning.

    Raises:
        Conflict: ``HISTORY_UNREADABLE``: read the past `anew`.
    """
    history = context.history
    for exchange in context.exchanges:
        history = await extended(history, exchange.prompt, exchange.frames)
    return history


def _history(answer: Row | None) -> str:
    assert answer is not None
    return str(answer["history"])


def _exchange(tx: Reader, content: str, answer: Row | None) -> QuestionExchange:
    return QuestionExchange(content, list(_engine_frames(tx, answer["id"])) if answer else [])


def _engine_frames(tx: Reader, turn_id: str) -> Iterator[Frame]:
    for kind, data in frames.of_turn(tx, turn_id):
        match kind:
            case FrameKind.TOKEN:
                yield Token(data["content"])
            case FrameKind.TOOL_START:
                yield ToolStarted(data["call_id"], data["tool_name"], data["tool_input"])
            case FrameKind.TOOL_COMPLETE:
                yield ToolCompleted(data["call_id"], data["tool_name"], data["tool_result"], data["is_error"])
