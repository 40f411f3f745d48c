"""The settings that a model takes: one that it refuses is an error with its name, and is never left out silently."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic_ai.exceptions import ModelHTTPError, ModelRequestRejectedError

from workbench.errors import BadInput
from workbench.providers.question import ModelQuestion
from workbench.providers.words import words_of

_WIRE = {
    "temperature": ("temperature",),
    "topP": ("top_p", "topP"),
    "maxOutputTokens": ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens"),
}
"""The settings, and what providers call them."""
_SAMPLING = ("temperature", "topP")


def require_taken(profile: Mapping[str, Any], question: ModelQuestion) -> None:
    """Refuse a setting that the library would leave out, because it knows that the model refuses it.

    Args:
        profile: what the library knows of the model.

    Raises:
        BadInput: ``SETTING_REFUSED``.
    """
    if _refuses_sampling(profile, question) and (names := [name for name in _set(question) if name in _SAMPLING]):
        raise _refused(names, "This model chooses its words by itself.")


def refuse_setting(error: BaseException, question: ModelQuestion) -> None:
    """Refuse the settings that a provider names in its refusal of a request.

    Raises:
        BadInput: ``SETTING_REFUSED``.
    """
    if not isinstance(error, ModelRequestRejectedError):
        return
    words = str(error.body) if isinstance(error, ModelHTTPError) else str(error)
    named = [name for name in _set(question) if re.search(rf"\b({'|'.join(_WIRE[name])})\b", words)]
    if named:
        raise _refused(named, words_of(error)) from None


def _refuses_sampling(profile: Mapping[str, Any], question: ModelQuestion) -> bool:
    if profile.get("anthropic_disallows_sampling_settings") or profile.get("bedrock_disallows_sampling_settings"):
        return True
    if not profile.get("openai_supports_reasoning"):
        return False
    efforts = profile.get("openai_reasoning_efforts")
    may_rest = profile.get("openai_supports_reasoning_effort_none") if efforts is None else "none" in efforts
    thinks = profile.get("thinking_enabled_by_default") if question.thinking is None else question.thinking
    return not may_rest or bool(thinks)


def _set(question: ModelQuestion) -> list[str]:
    """The names of the settings that are set."""
    values = (question.temperature, question.top_p, question.max_output_tokens)
    return [name for name, value in zip(_WIRE, values, strict=True) if value is not None]


def _refused(names: list[str], why: str) -> BadInput:
    noun, listed = "setting" if len(names) == 1 else "settings", " and ".join(names)
    text = f"The model refuses the {noun} {listed}. Remove one, or choose another model. {why}"
    return BadInput("SETTING_REFUSED", text, settings=names)
