"""What went wrong with a model, as coded errors."""

from __future__ import annotations

import math

from pydantic_ai import exceptions as ai

from workbench.errors import BadInput, Conflict, Hint, Refused, TooMany, Unavailable, WorkbenchError
from workbench.providers.words import address_of, words_of

TOO_LONG = (
    *("exceed_context_size", "available context size", "maximum context length", "context_length_exceeded"),
    *("greater than the context length", "context the overflows", "context length of only", "exceeds the context"),
)
"""How llama.cpp, LM Studio and others say that a request is too long; of several providers, the library knows it."""
RETRY_SECONDS = 30.0
"""When to try again if the provider does not say."""


def coded(error: BaseException) -> WorkbenchError:
    """The coded error for what a model's provider, or the engine, raised."""
    reason = words_of(error)
    match error:
        case WorkbenchError():
            return error
        case _ if is_too_long(error):
            return Conflict(
                "CONVERSATION_TOO_LONG",
                "The question, with what belongs to it, is too long for this model. Ask less, or choose another model.",
            )
        case ai.ModelAuthenticationError():
            return Refused("PROVIDER_KEY_REFUSED", "The provider refuses the key. Check it in the definition.")
        case ai.ModelQuotaExceededError():
            return Unavailable("PROVIDER_QUOTA", f"The provider's quota is used up. {reason}")
        case ai.ModelRateLimitError():
            wait = math.ceil(error.retry_after or RETRY_SECONDS)
            return TooMany(
                "PROVIDER_RATE_LIMIT",
                f"The provider gets too many requests. Try again in {wait} s.",
                retry_after_seconds=wait,
            )
        case ai.ModelNotFoundError() if not _is_of_provider(error.body):
            address = address_of(error) or "its address"
            return BadInput("PROVIDER_REJECTED", f"No models are at {address}: it may lack /v1. {reason}")
        case ai.ModelNotFoundError():
            return BadInput("MODEL_NOT_FOUND", f"The provider has no such model. {reason}")
        case ai.ModelRequestRejectedError():
            return BadInput("PROVIDER_REJECTED", f"The provider rejects the request. {reason}")
        case ai.ModelTimeoutError() | ai.ModelRequestTimeout():
            return Unavailable("PROVIDER_TIMEOUT", "The provider did not answer in time. Try again.")
        case ai.ModelConnectionError():
            return Unavailable("PROVIDER_UNREACHABLE", f"The provider cannot be reached. {reason}")
        case ai.OutputTokenLimitExceeded():
            return Conflict(
                "CHAT_LIMIT",
                "The answer was cut at its limit of tokens before it said anything. Raise maxOutputTokens.",
            )
        case ai.ContentFilterError():
            return Conflict("CONTENT_FILTERED", "The provider's filter stopped the answer.")
        case ai.ModelAPIError():
            return Unavailable("PROVIDER_FAILED", f"The provider failed. {reason}")
        case ai.UnexpectedModelBehavior():
            return Unavailable("PROVIDER_ANSWER_INVALID", f"The provider's answer cannot be read. {reason}")
    return Unavailable("CHAT_FAILED", "The answer failed; the server's log says why. Try again.")


def is_too_long(error: BaseException) -> bool:
    """Whether a request was longer than its model takes, in whichever words its server says so."""
    if isinstance(error, ai.ModelContextWindowExceededError):
        return True
    return isinstance(error, ai.ModelAPIError) and any(words in str(error).lower() for words in TOO_LONG)


def _is_of_provider(body: object) -> bool:
    """Whether the body of an answer is an error of a provider, and not of whatever else is at its address."""
    known = {"error", "message", "Error"}
    return isinstance(body, list) or (isinstance(body, dict) and not known.isdisjoint(body))


def limit_reached(limit: str, reason: str) -> Conflict:
    """The error of an answer that a limit ended.

    Args:
        limit: its name.
        reason: how far it is used.
    """
    also = ", or maxChatTurns of the definition" if limit == "steps" else ""
    hint = Hint("update_conversation", f"Raise it with {{}}{also}.")
    return Conflict("CHAT_LIMIT", f"The answer reached the limit {limit}: {reason}.", hint, limit=limit)
