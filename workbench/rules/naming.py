"""Resolves a reference that may be an id or a name: an id takes precedence, and a name must be unique."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
