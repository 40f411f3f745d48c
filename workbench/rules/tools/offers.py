"""What a tool says about itself, and how that differs from what it said before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

CHANGES = 50
"""How many changes are shown."""


@dataclass(frozen=True, slots=True)
class OfferChange:
    """A value that was added, removed or replaced; None: there was or is none.

    Args:
        path: where, such as ``parameters.properties.query.type``.
    """

    path: str
    before: Any
    after: Any


def changes(before: str, after: str) -> list[OfferChange]:
    """How two offers differ, at most `CHANGES` places.

    Args:
        before, after: JSON objects as text: `description`, `parameters` and `result`.
    """
    return list(islice(_changes((), json.loads(before), json.loads(after)), CHANGES))


def _changes(path: tuple[str, ...], before: Any, after: Any) -> Iterator[OfferChange]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from _changes((*path, key), before.get(key), after.get(key))
    elif json.dumps(before) != json.dumps(after):  # for Python, True is 1
        yield OfferChange(".".join(path), before, after)
