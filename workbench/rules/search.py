"""What a person types to find something, as databases take it: text to find, never their syntax."""

from __future__ import annotations


def like_pattern(text: str | None) -> str | None:
    """The pattern for ``LIKE … ESCAPE '!'`` of whatever contains a text; None when it is blank."""
    if text is None or not text.strip():
        return None
    escaped = "".join(f"!{char}" if char in "!%_" else char for char in text.strip())
    return f"%{escaped}%"


def words(text: str | None) -> str | None:
    """The full-text query for all the words of a text, each in quotes; None when there is none to look for."""
    plain = "".join(" " if char in '"\0' else char for char in text or "")
    found = [word for word in plain.split() if any(char.isalnum() for char in word)]
    return " ".join(f'"{word}"' for word in found) or None
