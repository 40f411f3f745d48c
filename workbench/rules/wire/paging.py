"""Where a page of a list ended, as a text that its reader hands back and need not understand.

The text holds the sort key of the last row, so a page goes on where the one before ended, whatever
was added or removed in between. It is guarded against accidents and guesses, not against forgery:
whoever makes one up sees no row that a query does not grant anyway.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field

from workbench.errors import BadInput

R = TypeVar("R", bound=Mapping[str, Any])

Search = Annotated[str | None, Field(max_length=200, description="Part of a name or description.")]
Deleted = Annotated[bool, Field(description="Those that were deleted, instead.")]
Limit = Annotated[int, Field(ge=1, le=500)]
Cursor = Annotated[str | None, Field(description="Where to read on: next_cursor of the page before.")]

_DIGEST = 6
_FIRST = -(2**63)


def encode(key: Sequence[int | str]) -> str:
    """The cursor after the row with a sort key."""
    body = json.dumps(list(key), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_digest(body) + body).decode().rstrip("=")


def decode(cursor: str, *types: type[int] | type[str]) -> tuple[Any, ...]:
    """The sort key in a cursor; `types` are those of its parts.

    Raises:
        BadInput: ``BAD_CURSOR``: no list that is sorted by such a key gave this cursor.
    """
    key = _key(cursor)
    if tuple(map(type, key)) != types or not all(_fits(part) for part in key) or encode(key) != cursor:
        raise BadInput("BAD_CURSOR", "This cursor is not from this list. Send next_cursor as it was, or none to begin.")
    return tuple(key)


def after(cursor: str | None) -> dict[str, int | str]:
    """Where a page starts in a list ordered by `created_at` and `id`: the parameters `after_at` and `after_id`.

    Raises:
        BadInput: ``BAD_CURSOR``.
    """
    at, last = decode(cursor, int, str) if cursor else (_FIRST, "")
    return {"after_at": at, "after_id": last}


def cut(rows: Sequence[R], limit: int, *columns: str) -> tuple[Sequence[R], str | None]:
    """The page among `limit` + 1 rows, and the cursor after it: None when nothing follows.

    Args:
        columns: those that the rows are ordered by.
    """
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], encode([rows[limit - 1][column] for column in columns])


def _key(cursor: str) -> list[Any]:
    """What a cursor holds, or nothing if it is none."""
    try:
        whole = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        body = whole[_DIGEST:]
        key = json.loads(body) if whole[:_DIGEST] == _digest(body) else []
    except (ValueError, RecursionError, binascii.Error):
        return []
    return key if isinstance(key, list) else []


def _fits(part: int | str) -> bool:
    """Whether databases can compare with it."""
    return isinstance(part, str) or _FIRST <= part < 2**63


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()
