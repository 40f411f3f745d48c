"""What is given to be executed or sent is never rewritten: a secret in it is named when given, masked where shown."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

from pydantic import PlainSerializer

from workbench.rules.secrets.forms import MASK, after_flags, form_spans, is_secret_under, says_secret
from workbench.rules.secrets.mask import Mask

T = TypeVar("T")
_FORMS = Mask()

_NAME_BEFORE = re.compile(r"([A-Za-z][\w.-]*)[\"']?\s*[:=]?\s*[\"']?(?:(?:Bearer|Basic|Token)\s+)?\Z", re.IGNORECASE)


def with_masks(value: T) -> T:
    """A text, or JSON value, as it is shown: what is secret by its form or name is masked."""
    masked: T = _FORMS.data(value)
    return masked


def as_given(value: T, stored: T) -> T:
    """What somebody sends back who was shown a value masked: the stored one, if nothing else differs."""
    return stored if value == with_masks(stored) else value


GivenText = Annotated[str, PlainSerializer(with_masks, return_type=str, when_used="json")]
"""A text in an answer that is masked there."""
GivenCommand = Annotated[
    str | list[str] | None, PlainSerializer(with_masks, return_type=str | list[str] | None, when_used="json")
]
"""A command in an answer that is masked there."""
GivenWords = Annotated[list[str], PlainSerializer(with_masks, return_type=list[str], when_used="json")]
"""The words of a command in an answer that are masked there."""
GivenCheck = Annotated[
    str | list[str] | dict[str, Any] | None,
    PlainSerializer(with_masks, return_type=str | list[str] | dict[str, Any] | None, when_used="json"),
]
"""A check in an answer, which has a command, that is masked there."""
GivenData = Annotated[dict[str, Any], PlainSerializer(with_masks, return_type=dict[str, Any], when_used="json")]
"""Data in an answer that are masked there."""


def warnings_about(what: str, value: Any) -> list[str]:
    """What to say of a text, or JSON value, that has secrets in it, or masks of secrets.

    Args:
        what: what has them, such as ``run``.
    """
    if MASK in str(value):
        return [f"{what} contains {MASK}, the mask of a secret, not the secret. Name a variable in its place."]
    names = list(dict.fromkeys(_names(value)))
    return [warning_of(what, names[0])] if names else []


def warning_of(what: str, variable: str = "SECRET") -> str:
    """What to say of a text with a secret, which may be in a variable instead."""
    return (
        f"{what} contains a secret, which is kept as it is and masked where it is shown. Name a variable such as "
        f"${variable} in its place, and give that to the agent: `spawn --env {variable}=…`."
    )


def _names(value: Any, key: str = "") -> list[str]:
    match value:
        case str() if key and is_secret_under(key, value):
            return [_variable(key)]
        case str():
            spans = (span for span in form_spans(value) if value[slice(*span)] != MASK)
            return [_variable_before(value[max(0, start - 200) : start]) for start, _ in spans]
        case dict():
            return [name for one, inner in value.items() for name in (*_names(one), *_names(inner, one))]
        case list() | tuple():
            words = after_flags(value)
            return [name for flag, one in words for name in _names(one, flag if isinstance(one, str) else key)]
    return []


def _variable_before(text: str) -> str:
    found = _NAME_BEFORE.search(text)
    return _variable(found[1]) if found and says_secret(found[1]) else "SECRET"


def _variable(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").upper()
