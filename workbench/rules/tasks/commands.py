"""Which tasks script workers can do: those with a command."""

from __future__ import annotations

from collections.abc import Sequence

LISTED = 5
"""The most ids that a note lists."""


def note_on_missing(ids: Sequence[int]) -> str | None:
    """A note for the creator of tasks without a command; None if there are none."""
    if not ids:
        return None
    if len(ids) == 1:
        return f"Task {ids[0]} has no command (run): only an LLM agent or a person can do it."
    more = len(ids) - LISTED
    listed = ", ".join(map(str, ids[:LISTED])) + (f" and {more:,} more" if more > 0 else "")
    return f"Tasks {listed} have no command (run): only an LLM agent or a person can do them."
