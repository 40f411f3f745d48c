"""What may travel: data that every reader can be sent again as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

DEPTH_LIMIT = 64
"""Levels of objects and arrays. Deeper ones could be stored, but serializers give up on them."""


def check(value: Any) -> None:
    """Refuse what Python takes for JSON and others do not: NaN, infinity, half characters, abysses.

    Raises:
        ValueError: says why.
    """
    if _nests_too_deep(value):
        raise ValueError(f"it nests deeper than {DEPTH_LIMIT} levels")
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except TypeError as error:
        raise ValueError(str(error)) from None


def _nests_too_deep(value: Any) -> bool:
    level = list(_containers([value]))
    for _ in range(DEPTH_LIMIT):
        if not level:
            return False
        level = [inner for outer in level for inner in _containers(outer)]
    return bool(level)


def _containers(inside: Any) -> Iterable[Any]:
    values = inside.values() if isinstance(inside, Mapping) else inside
    return (value for value in values if isinstance(value, Mapping | list | tuple))
