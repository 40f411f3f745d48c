"""Suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 60
"""Longer words get no suggestion: comparing them takes long, and no name is that long."""


def similar(word: str, names: Iterable[str]) -> str:
    """The names that a misspelt word may mean, as `a, b or c`; empty if there are none.

    Names with the same parts in another order take precedence: `task_create` means `create_task`.
    """
    if len(word) > LONGEST:
        return ""
    known = sorted(set(names))
    found = [name for name in known if _parts(name) == _parts(word)] or get_close_matches(word.lower(), known, n=3)
    *others, last = found or [""]
    return f"{', '.join(others)} or {last}" if others else last


def suggestion(word: str, names: Iterable[str]) -> str:
    """A question before what there is, such as ``Did you mean waits? ``; empty if nothing is near."""
    near = similar(word, names)
    return f"Did you mean {near}? " if near else ""


def _parts(name: str) -> list[str]:
    return sorted(name.lower().replace("-", "_").split("_"))
