"""Checks, once on input, that data can be stored and sent to any reader as JSON (RFC 8259)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from pydantic_core import from_json

DEPTH_LIMIT = 64
"""Levels of objects and arrays. Deeper ones could be stored, but serializers reject them."""

_TOO_DEEP = f"it nests deeper than {DEPTH_LIMIT} levels"
_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode


class NotJson(ValueError):
    """The text is not JSON."""


_UNUSUAL = re.compile(r"\\u0000|[0-9][eE]\+?[0-9]{3}|[0-9]{309}")
"""What needs a check after decoding: NUL, and numbers that may be infinite."""


def decode(text: str | bytes) -> Any:
    """Decode JSON text to a value that passes `check`.

    Raises:
        NotJson: the text is not JSON. ValueError: it contains a value that `check` refuses; the message says which.
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


_TEXT = r'("(?:\\.|[^"\\])*")'
_COMMENT = re.compile(rf"{_TEXT}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])")


def decode_configuration(text: str) -> Any:
    """Decode JSON as editors let people write it: with comments, trailing commas and a byte order mark.

    Raises:
        ValueError: see `decode`.
    """
    for extra in (_COMMENT, _COMMA):
        text = extra.sub(lambda found: found[1] or "", text)
    return decode(text.removeprefix("\ufeff"))


def _reason(text: str | bytes, error: ValueError) -> ValueError:
    """Why text cannot be decoded, found with Python's decoder, which accepts more than JSON."""
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
    """Refuse what Python encodes as JSON but others reject: NaN, infinity, lone surrogates, NUL, deep nesting.

    Raises:
        ValueError: the message says why.
    """
    try:
        text = _json(value)
        text.encode()
    except TypeError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except UnicodeEncodeError:
        raise ValueError("it contains half of a character (a lone surrogate), which cannot be stored") from None
    except ValueError:
        raise ValueError("it contains a number that is NaN or infinite, which JSON does not have") from None
    if text.count("{") + text.count("[") > DEPTH_LIMIT and _nests_too_deep(value):
        raise ValueError(_TOO_DEEP)
    if "\\u0000" in text and _has_nul(value):
        raise ValueError("it contains the character NUL, which databases cannot store")


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
