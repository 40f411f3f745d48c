"""The hash of contents, which their manifest states."""

from __future__ import annotations

import json
from typing import Any

from rid_lib.ext.utils import sha256_hash, sha256_hash_json

LARGEST_EXACT = 2**53
"""The largest integer that every encoder writes alike."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def hash_of(contents: dict[str, Any]) -> str:
    """SHA-256 of contents in canonical form (RFC 8785), as hexadecimal digits.

    rid-lib computes it in Python alone, which takes most of the time of an event. Most contents need none of its rules.

    Raises:
        ValueError: the contents have a number that is not finite.
    """
    if _is_plain(contents):
        return str(sha256_hash(_ENCODER.encode(contents)))
    return str(sha256_hash_json(contents))


def _is_plain(contents: dict[str, Any]) -> bool:
    """Whether Python's own encoder writes a value in canonical form.

    It writes floats and large integers differently, and sorts keys by code points instead of UTF-16 code units.
    """
    pending: list[Any] = [contents]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if not "".join(value).isascii():
                return False
            pending += value.values()
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, int):
            if abs(value) > LARGEST_EXACT:
                return False
        elif value is not None and not isinstance(value, str):
            return False
    return True
