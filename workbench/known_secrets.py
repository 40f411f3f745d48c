"""The secrets that this process has read for programs and servers, so that no record shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cachetools import LRUCache

from workbench.rules.tools.masking import masked

MOST = 10_000


class KnownSecrets:
    """Values that are masked wherever they occur. It has no representation that shows them."""

    def __init__(self) -> None:
        self._values: LRUCache[str, None] = LRUCache(MOST)

    def add(self, values: Iterable[str]) -> None:
        """Mask these values from now on."""
        for value in values:
            self._values[value] = None

    def masked(self, value: Any, schema: Mapping[str, Any] | bool = True) -> Any:
        """A JSON value without secrets: neither these, nor what its schema marks as one."""
        return masked(value, schema, self._values)

    def __repr__(self) -> str:
        return f"<{len(self._values)} secrets>"
