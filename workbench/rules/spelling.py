"""Suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST = 60
"""Longer words get no suggestion: comparing them takes long, and no name is that long."""
FORMER_NAMES = {
    "send_message": "ask",
    "list_messages": "list_turns",
    "messages": "turns",
    "message_id": "turn_id",
}
"""What is now called otherwise: operations, arguments, fields and views."""


def similar(word: str, names: Iterable[str]) -> str:
    """The names that a misspelt word may mean, as `a, b or c`; empty if there are none.

    A former name means the present one. Names with the same parts in another order take precedence: `task_create` means
    `create_task`.
    """
    if len(word) > LONGEST:
        return ""
    known = sorted(set(names))
    now = FORMER_NAMES.get(word)
    if now is not None and now in known:
        return now
    found = [name for name in known if _parts(name) == _parts(word)] or get_close_matches(word.lower(), known, n=3)
    *others, last = found or [""]
    return f"{', '.join(others)} or {last}" if others else last


def suggestion(word: str, names: Iterable[str]) -> str:
    """A sentence before what there is: ``Did you mean waits? ``, or ``It is now ask. ``; empty if nothing is near."""
    near = similar(word, names)
    if near and near == FORMER_NAMES.get(word):
        return f"It is now {near}. "
    return f"Did you mean {near}? " if near else ""


def _parts(name: str) -> list[str]:
    return sorted(name.lower().replace("-", "_").split("_"))
