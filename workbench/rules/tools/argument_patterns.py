"""Patterns of a call's arguments, as permissions state them: a text for each argument, with an asterisk for any text.

What cannot be told is not matched. An asterisk stands for no line end and no sign with which a shell begins another
command, within a list or an object for nothing beyond its text, and an argument in which a path goes up is matched by a
lone asterisk only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from workbench.rules.tools.results import as_json

ANY = "*"
_WITHIN = r"[^\x00-\x1f\x7f;&|<>`$()]"
"""The characters for which an asterisk beside other text stands."""
_WITHIN_JSON = _WITHIN.replace("]", '"]')
"""The same in the JSON of a value that is no text."""
_DOT = r"(?:\.|%2e)"
_UP = re.compile(rf"(?<![\w.]){_DOT}{_DOT}(?![\w.])|(?:/|%2f|%5c){_DOT}{_DOT}(?![\w.])", re.IGNORECASE)


def matches(patterns: Mapping[str, str], arguments: Mapping[str, Any]) -> bool:
    """Whether arguments are as patterns say: each has a pattern, and each pattern an argument."""
    return patterns.keys() == arguments.keys() and all(_matches(patterns[name], arguments[name]) for name in patterns)


def unnamed(patterns: Mapping[str, str], arguments: Mapping[str, Any]) -> list[str]:
    """The arguments for which there is no pattern, and those whose pattern they do not match."""
    names = patterns.keys() | arguments.keys()
    return sorted(
        name
        for name in names
        if name not in patterns or name not in arguments or not _matches(patterns[name], arguments[name])
    )


def _matches(pattern: str, value: Any) -> bool:
    if pattern == ANY:
        return True
    if isinstance(value, float) and value.is_integer() and pattern == str(int(value)):
        return True  # JSON has one kind of number, and browsers write it so
    text, within = (value, _WITHIN) if isinstance(value, str) else (as_json(value), _WITHIN_JSON)
    if ANY not in pattern:
        return text == pattern
    first, *parts, last = map(re.escape, pattern.split(ANY))
    # Each part is taken where it comes first, without going back: that takes time by the text's length only.
    regex = f"{first}{''.join(f'(?>{within}*?{part})' for part in parts if part)}{within}*{last}"
    return re.fullmatch(regex, text) is not None and _UP.search(text) is None
