"""The limits of a conversation, and what is left of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from workbench.errors import Conflict, Hint
from workbench.model import Wire


class ConversationLimits(Wire):
    """Limits of a conversation; null: none. `seconds` is for each answer, without the time it waits for you. `steps` is
    for each answer: null: maxChatTurns of its definition, else 20."""

    turns: Annotated[int | None, Field(ge=1, le=100_000, description="Answers, also those that are retried.")] = None
    tokens: Annotated[int | None, Field(ge=1, le=10**12, description="Tokens of all requests and answers.")] = None
    cost_usd: Annotated[float | None, Field(gt=0, le=10**9, description="US dollars, where the price is known.")] = None
    seconds: Annotated[float | None, Field(gt=0, le=86_400, description="How long one answer may take.")] = None
    steps: Annotated[int | None, Field(ge=1, le=1_000, description="How often the model is asked for one answer.")] = (
        None
    )


@dataclass(frozen=True, slots=True)
class Spent:
    """What a conversation has used.

    Args:
        answers: how many answers were begun.
        tokens: the tokens that providers reported.
        cost_usd: the costs that are known.
        unpriced: how many answers have asked a model whose price is unknown.
    """

    answers: int
    tokens: int
    cost_usd: float
    unpriced: int


def require_left(limits: ConversationLimits, spent: Spent) -> None:
    """Refuse another answer if a limit is reached.

    Raises:
        Conflict: ``CHAT_LIMIT``; `details.limit` is its name.
    """
    if limits.turns is not None and spent.answers >= limits.turns:
        raise _reached("turns", f"its {limits.turns:,} answers are used up")
    if limits.tokens is not None and spent.tokens >= limits.tokens:
        raise _reached("tokens", f"it has used {spent.tokens:,} of {limits.tokens:,} tokens")
    if limits.cost_usd is not None and spent.cost_usd >= limits.cost_usd:
        raise _reached("cost_usd", f"it has cost {spent.cost_usd:.4f} of {limits.cost_usd:g} US dollars")
    if limits.cost_usd is not None and spent.unpriced:
        raise _reached("cost_usd", "the price of its model is unknown, so its limit of costs cannot be kept")


def tokens_left(limits: ConversationLimits, spent: Spent) -> int | None:
    """How many tokens the next answer may use; None: any number."""
    return None if limits.tokens is None else max(1, limits.tokens - spent.tokens)


def money_left(limits: ConversationLimits, spent: Spent) -> float | None:
    """How many US dollars the next answer may cost; None: any number."""
    return None if limits.cost_usd is None else max(0.0, limits.cost_usd - spent.cost_usd)


def _reached(limit: str, reason: str) -> Conflict:
    return Conflict(
        "CHAT_LIMIT",
        f"The conversation has reached a limit: {reason}.",
        Hint("update_conversation", "Raise it with {}, or begin a new one."),
        limit=limit,
    )
