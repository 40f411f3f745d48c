"""Parses times as older programs wrote them: text in several formats, or numbers."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

from workbench.model import SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = -62_135_596_800 * SECOND
_LAST = 253_402_300_799 * SECOND  # leaves the last second for rounding
_BEFORE_ZONE = re.compile(r"\s+(?=[+-]\d)")
_NAMED_ZONE = re.compile(r"\s*(?:UTC|GMT|Z)$", re.IGNORECASE)


def parse(value: object) -> int | None:
    """A time in microseconds UTC, or None if it is invalid or beyond what `model.iso` can show (years 1 to 9999).

    Accepts ISO 8601 text with a ``T`` or a space, any fraction, with or without a zone, and numbers since the epoch:
    seconds, or milliseconds or microseconds if they are too large for seconds. Text without a zone is UTC, as written
    by SQLite's CURRENT_TIMESTAMP and `datetime.utcnow`.
    """
    at = None
    if isinstance(value, str):
        at = _from_text(value.strip())
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        at = _from_number(value)
    return at if at is not None and _FIRST <= at <= _LAST else None


def _from_text(text: str) -> int | None:
    try:
        read = datetime.fromisoformat(_BEFORE_ZONE.sub("", _NAMED_ZONE.sub("Z", text)))
    except ValueError:
        return None
    aware = read if read.tzinfo else read.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def _from_number(number: float) -> int:
    for scale, least in ((1, 1e14), (1_000, 1e11)):
        if abs(number) >= least:
            return int(number * scale)
    return int(number * SECOND)
