"""Data that any reader can be sent again as JSON (RFC 8259): checked once, where it is decoded or comes in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from pydantic_core import from_json

DEPTH_LIMIT = 64
"""Levels of objects and arrays. Deeper ones could be stored, but serializers give up on them."""

_TOO_DEEP = f"it nests deeper than {DEPTH_LIMIT} levels"
_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode


class NotJson(ValueError):
    """Text that cannot be read as JSON at all."""


_UNUSUAL = re.compile(r"\\u0000|[0-9][eE]\+?[0-9]{3}|[0-9]{309}")
"""What can only be told after decoding: NUL, and numbers that may be infinite."""


def decode(text: str | bytes) -> Any:
    """Read JSON text; what comes out passes `check`.

    Raises:
        NotJson: the text is not JSON. ValueError: it holds a value that `check` refuses; the message says which.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise _reason(text, error) from None
    if _UNUSUAL.search(text) or text.count("{") + text.count("[") > DEPTH_LIMIT:
        check(value)
    return value


def _reason(text: str | bytes, error: ValueError) -> ValueError:
    """Why text cannot be decoded: Python reads more than JSON, and knows what is wrong with it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return NotJson("it is not JSON")
    try:
        check(value)
    except ValueError as reason:
        return reason
    return error


def check(value: Any) -> None:
    """Refuse what Python takes for JSON and others do not: NaN, infinity, half characters, NUL, abysses.

    Raises:
        ValueError: says why.
    """
    try:
        text = _json(value)
        text.encode()
    except TypeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if text.count("{") + text.count("[") > DEPTH_LIMIT and _nests_too_deep(value):
        raise ValueError(_TOO_DEEP)
    if "\\u0000" in text and _has_nul(value):
        raise ValueError("it holds the character NUL, which databases do not keep")


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    inside = [*value.keys(), *value.values()] if isinstance(value, dict) else value
    return isinstance(inside, list | tuple) and any(map(_has_nul, inside))


def _nests_too_deep(value: Any) -> bool:
    level = list(_containers([value]))
    for _ in range(DEPTH_LIMIT):
        if not level:
            return False
        level = [inner for outer in level for inner in _containers(outer)]
    return bool(level)


def _containers(inside: Any) -> Iterable[Any]:
    values = inside.values() if isinstance(inside, dict) else inside
    return (value for value in values if isinstance(value, dict | list | tuple))
