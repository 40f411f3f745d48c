"""Turns a user's search text into database patterns, with all special characters escaped."""

from __future__ import annotations


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
