"""What to say when a secret is given in what will be executed or sent, which is never rewritten."""

from __future__ import annotations

import re
from typing import Any

from workbench.rules.secrets.forms import MASK, form_spans, is_secret_under, says_secret

_NAME_BEFORE = re.compile(r"([A-Za-z][\w.-]*)[\"']?\s*[:=]?\s*[\"']?(?:(?:Bearer|Basic|Token)\s+)?\Z", re.IGNORECASE)


def warnings_about(what: str, value: Any) -> list[str]:
    """What to say of a text, or JSON value, that has secrets in it.

    Args:
        what: what has them, such as ``run``.
    """
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
            flags = ("", *(one.lstrip("-") if isinstance(one, str) and one.startswith("-") else "" for one in value))
            return [
                name
                for flag, one in zip(flags, value, strict=False)
                for name in _names(one, flag if isinstance(one, str) else key)
            ]
    return []


def _variable_before(text: str) -> str:
    found = _NAME_BEFORE.search(text)
    return _variable(found[1]) if found and says_secret(found[1]) else "SECRET"


def _variable(name: str) -> str:
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").upper()
