"""Finds what a text names: by an id or a name, where an id takes precedence and a name must be unique; suggests the
names that a misspelt one may mean; turns search text into patterns of the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from pydantic import Field, StringConstraints

from workbench.errors import BadInput

R = TypeVar("R", bound=Mapping[str, Any])

Name = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        min_length=1,
        max_length=100,
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+$",
    ),
    Field(description="Display name."),
]
"""A display name, without control characters and without characters that reverse the text around it."""
NOTHING = frozenset({"none", "null"})
"""What commands and programs take for no session, no team and no persona; new ones cannot be called that."""
Description = Annotated[str, Field(max_length=10_000, description="Its purpose.")]


def resolve_ref(found: Sequence[R], wanted: str, noun: str) -> R | None:
    """The row that `wanted` refers to; None if there is none.

    Args:
        found: the rows whose `id` or `name` is `wanted`.

    Raises:
        BadInput: ``AMBIGUOUS_NAME``; `details.candidates` are the ids.
    """
    for row in found:
        if row["id"] == wanted:
            return row
    if len(found) > 1:
        candidates = [row["id"] for row in found]
        raise BadInput(
            "AMBIGUOUS_NAME",
            f"More than one {noun} is named {wanted!r}. Choose by id: {', '.join(candidates)}.",
            candidates=candidates,
        )
    return found[0] if found else None


LONGEST = 60
"""Longer words get no suggestion: comparing them takes long, and no name is that long."""

FORMER_NAMES = {
    "send_message": "ask",
    "message_id": "turn_id",
}
"""What is now called otherwise: operations, arguments and fields."""


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


def like_pattern(text: str | None) -> str | None:
    """The pattern for ``LIKE … ESCAPE '!'`` that matches values containing the text; None if it is blank."""
    if text is None or not text.strip():
        return None
    escaped = "".join(f"!{char}" if char in "!%_" else char for char in text.strip())
    return f"%{escaped}%"


def words(text: str | None) -> str | None:
    """The full-text query for all words of a text, each in quotes; None if it has none."""
    plain = "".join(" " if char in '"\0' else char for char in text or "")
    found = [word for word in plain.split() if any(char.isalnum() for char in word)]
    return " ".join(f'"{word}"' for word in found) or None
