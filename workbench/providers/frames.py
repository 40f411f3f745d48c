"""What an answer consists of, in the order in which it comes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

History = dict[str, Any]
"""A conversation as the engine keeps it: JSON-ready, with the version of its form; see `transcript`."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of the model's reasoning, from providers that show it. It is no part of the text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """The model calls a tool. `arguments` is JSON text, as the model wrote it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCompleted:
    """A tool's result is known, in the words that the model reads."""

    call_id: str
    name: str
    result: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Retrying:
    """A request has failed before anything of its answer came, and is sent again.

    Args:
        code: that of the failure, such as ``PROVIDER_RATE_LIMIT``.
        attempt: the number of the next attempt; the first one is 1.
        attempts: how many there are at most.
        seconds: the wait before it.
    """

    code: str
    message: str
    attempt: int
    attempts: int
    seconds: float


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """What an answer has cost: what the provider reported. If it reported nothing, or the price is unknown: None.

    Args:
        requests: how many answers of the model were begun.
        unmeasured: of how many of them the tokens are unknown, because they were cut, or are not reported.
    """

    input_tokens: int | None
    output_tokens: int | None
    requests: int
    cost_usd: Decimal | None
    unmeasured: int = 0


Purpose = Literal["answer", "summary"]
"""What a request is for: an answer, or a summary of a conversation that is too long."""


@dataclass(frozen=True, slots=True)
class Requested:
    """A request to the provider: when it is sent, and again when it has ended. What is not known is None.

    Args:
        number: in its answer, from 1.
        seconds: until what came of it ended; None: it has not.
        first_token_seconds: until the first piece of text, thought or call.
        cached_tokens: of the input, those that the provider had in its cache; `cache_write_tokens`: that it put there.
        thinking_tokens: of the output.
        end: how the provider says that it ended.
        error_code: why it failed.
    """

    number: int
    purpose: Purpose
    seconds: float | None = None
    first_token_seconds: float | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    thinking_tokens: int | None = None
    cost_usd: Decimal | None = None
    end: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """The conversation was too long for the model, so that it goes on with less. Said once for each way to shorten it.

    Args:
        message: what was done, in a sentence.
    """

    message: str


@dataclass(frozen=True, slots=True)
class Used:
    """What the answer has cost up to now: when the model is asked, and after each step of it."""

    usage: AnswerUsage


class End(StrEnum):
    """Why an answer ended: the model finished, it reached its limit of tokens, the provider's filter stopped it, or
    the connection was lost before the provider reported the end."""

    STOP = "stop"
    LENGTH = "length"
    FILTERED = "filtered"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Completed:
    """The end of an answer.

    Args:
        text: that of the last step; the tokens have that of all steps.
        history: the conversation with this answer; pass it with the next question.
        cut_at: the tokens of the last step, if its limit of tokens cut it; None: unknown.
    """

    text: str
    usage: AnswerUsage
    history: History
    end: End = End.STOP
    cut_at: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it is missing."""
        return self.end is End.STOP


Frame = Token | Thought | ToolStarted | ToolCompleted | Retrying | Requested | Compacted | Used | Completed
