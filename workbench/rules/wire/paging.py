"""Cursors: opaque texts that say where a page of a list ended.

A cursor holds the sort key of the last row, so the next page continues there even if rows were added or removed in
between. Its checksum guards against accidents, not forgery: a forged one shows no row that the query does not permit
anyway.
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
Deleted = Annotated[bool, Field(description="List the deleted ones instead.")]
Limit = Annotated[int, Field(ge=1, le=500, description="At most this many.")]
Cursor = Annotated[str | None, Field(description="Where to continue: next_cursor of the previous page.")]

_DIGEST = 6
_FIRST = -(2**63)


def encode(key: Sequence[int | str]) -> str:
    """The cursor that points after the row with this sort key."""
    body = json.dumps(list(key), separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_digest(body) + body).decode().rstrip("=")


def decode(cursor: str, *types: type[int] | type[str]) -> tuple[Any, ...]:
    """The sort key in a cursor; `types` are the types of its parts.

    Raises:
        BadInput: ``BAD_CURSOR``: it is not from a list with such a sort key.
    """
    key = _key(cursor)
    if tuple(map(type, key)) != types or not all(_fits(part) for part in key) or encode(key) != cursor:
        raise BadInput("BAD_CURSOR", "This cursor is not from this list. Send next_cursor unchanged, or none to start.")
    return tuple(key)


def after(cursor: str | None) -> dict[str, int | str]:
    """Where a page starts in a list ordered by `created_at` and `id`: the parameters `after_at` and `after_id`.

    Raises:
        BadInput: ``BAD_CURSOR``.
    """
    at, last = decode(cursor, int, str) if cursor else (_FIRST, "")
    return {"after_at": at, "after_id": last}


def cut(rows: Sequence[R], limit: int, *columns: str) -> tuple[Sequence[R], str | None]:
    """The page of at most `limit` rows, and the cursor after it; None if it is the last page.

    Args:
        rows: up to `limit` + 1 rows.
        columns: the columns that the rows are ordered by.
    """
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], encode([rows[limit - 1][column] for column in columns])


def _key(cursor: str) -> list[Any]:
    """The parts of a cursor; empty if it is invalid."""
    try:
        whole = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        body = whole[_DIGEST:]
        key = json.loads(body) if whole[:_DIGEST] == _digest(body) else []
    except (ValueError, RecursionError, binascii.Error):
        return []
    return key if isinstance(key, list) else []


def _fits(part: int | str) -> bool:
    """Whether databases can compare values with it."""
    return isinstance(part, str) or _FIRST <= part < 2**63


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()
