"""A conversation: what it is, and its row."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from workbench.errors import Hint, NotFound
from workbench.model import Micros, Wire
from workbench.rules.chat.limits import ConversationLimits, Spent
from workbench.store.base import Reader, Row
from workbench.store.queries import beside

SQL = beside(__file__)

ConversationId = Annotated[str, Field(max_length=100, description="The conversation's id; see list_conversations.")]


class ConversationUsage(Wire):
    """What a conversation has used, also for answers that were stopped, failed or replaced.

    Tokens and costs are what the providers reported: null if none did. `unmeasured` counts the answers of which the
    tokens of a request are unknown, because it was stopped, or its provider does not report them; `unpriced` those
    whose costs are unknown. `cached_tokens` of the input were in the provider's cache, `thinking_tokens` of the output
    are thoughts; list_model_requests has each request.
    """

    answers: int
    requests: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    thinking_tokens: int | None
    cost_usd: float | None
    unmeasured: int
    unpriced: int


class ConversationInfo(Wire):
    """A conversation.

    `definition` is the name of its definition, null for a model alone. `model` is the model that was chosen for it,
    null for that of the definition. `answer_id` is the answer that is being made. `last_frame` is the number of its
    newest frame; see read_frames.
    """

    id: str
    title: str
    definition: str | None
    definition_id: str | None
    definition_path: str | None
    model: str | None
    include: list[str]
    tools: list[str]
    limits: ConversationLimits
    turns: int
    answer_id: str | None
    last_frame: int
    usage: ConversationUsage
    created_at: Micros
    updated_at: Micros


def require_conversation(tx: Reader, conversation_id: str) -> ConversationInfo:
    """A conversation.

    Raises:
        NotFound: ``CONVERSATION_NOT_FOUND``.
    """
    row = tx.one(SQL.get, id=conversation_id)
    if row is None:
        raise NotFound(
            "CONVERSATION_NOT_FOUND",
            f"There is no conversation {conversation_id!r}; it may have been deleted.",
            Hint("list_conversations"),
        )
    return conversation_of(row)


def conversation_of(row: Row) -> ConversationInfo:
    """A conversation from its row."""
    values: dict[str, Any] = {name: row[name] for name in ConversationInfo.model_fields.keys() & row.keys()}
    return ConversationInfo(
        **values
        | {name: json.loads(row[name]) for name in ("include", "tools", "limits")}
        | {
            "last_frame": row["frames"],
            "usage": ConversationUsage(**{name: row[name] for name in ConversationUsage.model_fields}),
        }
    )


def spent(usage: ConversationUsage) -> Spent:
    """What a conversation has used, as its limits count it."""
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return Spent(usage.answers, tokens, usage.cost_usd or 0.0, usage.unpriced)
