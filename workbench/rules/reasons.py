"""Why a value is refused, in plain words instead of pydantic's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from workbench.rules.naming import similar

Context = Mapping[str, Any]

WHOLE_NUMBER = "must be a whole number"
NUMBER = "must be a number"
TRUTH = "must be true or false"
OBJECT = "must be an object"
TIME = "must be a time, such as 2026-05-01T09:30:00Z"
FIXED = {
    "missing": "required",
    "extra_forbidden": "unknown name",
    "string_type": "must be text",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), WHOLE_NUMBER),
    "int_parsing_size": "is too large",
    **dict.fromkeys(("float_type", "float_parsing"), NUMBER),
    "finite_number": "must be a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), TRUTH),
    "list_type": "must be a list",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "dataclass_type"), OBJECT),
    **dict.fromkeys(("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), TIME),
    "timezone_aware": "must have a time zone, such as Z",
    "none_required": "must be null",
}
"""The words for errors without a number or a text of their own."""
PATTERNS = {
    r"^[a-zA-Z0-9_-]+$": "may have only letters, digits, _ and -",
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "must be letters, digits, dots, _ and -, the first a letter or digit",
    r"^[A-Za-z0-9][A-Za-z0-9._ -]*$": "must be letters, digits, spaces, dots, _ and -, the first a letter or digit",
    r"^[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+$": "may have no control characters",
    r"^[^\s,\x00-\x1f\x7f]+$": "may have no spaces, commas and control characters",
    r"^([a-z]+:.+)?$": "must be provider:model",
    r"^[a-z]+:.+$": "must be provider:model",
}
"""The words for texts that do not match a pattern that people meet; others are named."""
WITH_CONTEXT: Mapping[str, Callable[[Context], str]] = {
    "less_than": lambda given: f"must be less than {_number(given['lt'])}",
    "less_than_equal": lambda given: f"must be at most {_number(given['le'])}",
    "greater_than": lambda given: f"must be greater than {_number(given['gt'])}",
    "greater_than_equal": lambda given: f"must be at least {_number(given['ge'])}",
    "string_too_short": lambda given: _at_least(given["min_length"], "character"),
    "string_too_long": lambda given: _at_most(given["max_length"], "character"),
    "too_short": lambda given: _at_least(given["min_length"], "item"),
    "too_long": lambda given: _at_most(given["max_length"], "item"),
    "string_pattern_mismatch": lambda given: PATTERNS.get(given["pattern"], f"must match {given['pattern']}"),
}


def reason(problem: ErrorDetails) -> str:
    """What is wrong with a value, as a sentence goes on after the name of its field: ``must be a whole number``.

    The value is not repeated, because it may be secret; for one of few words, the nearest of them are suggested.

    Args:
        problem: with its context, if `ValidationError.errors` was asked for that; likewise with its input.
    """
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in FIXED:
        return FIXED[kind]
    if kind in WITH_CONTEXT and context:
        return WITH_CONTEXT[kind](context)
    if kind in ("enum", "literal_error") and context:
        return _choice(str(context["expected"]), problem.get("input"))
    return problem["msg"].removeprefix("Value error, ")


def _choice(expected: str, given: object) -> str:
    """The words that a value can be, which pydantic has in quotation marks."""
    words = re.findall(r"'([^']*)'", expected)
    if not words:
        return f"must be {expected}"
    meant = similar(given, words) if isinstance(given, str) else ""
    return f"must be {_either(words)}" + (f" (did you mean {meant}?)" if meant and len(words) > 1 else "")


def _either(words: list[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _number(value: object) -> object:
    """A limit without a point behind a whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _at_least(count: int, noun: str) -> str:
    return "must not be empty" if count == 1 else f"must have at least {count:,} {noun}s"


def _at_most(count: int, noun: str) -> str:
    return f"must have at most {count:,} {noun}{'' if count == 1 else 's'}"
