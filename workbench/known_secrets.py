"""What is secret in this project, as far as this process knows it, so that no record shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cachetools import LRUCache

from workbench.rules.secrets.mask import Mask
from workbench.rules.tools.masking import masked

MOST = 10_000


class KnownSecrets:
    """Values that are masked wherever they occur, besides what is secret by its form.

    It has no representation that shows them.
    """

    def __init__(self) -> None:
        self._values: LRUCache[str, None] = LRUCache(MOST)
        self._mask: Mask | None = Mask()

    def add(self, values: Iterable[str]) -> None:
        """Mask these values from now on."""
        for value in values:
            if value not in self._values:
                self._mask = None
            self._values[value] = None

    def masked(self, value: Any, schema: Mapping[str, Any] | bool = True) -> Any:
        """A JSON value without secrets: neither these, nor what its schema marks as one."""
        return self.mask.data(masked(value, schema))

    @property
    def mask(self) -> Mask:
        """Masks all of them, and what is secret by its form; another one once others are known."""
        if self._mask is None:
            self._mask = Mask(list(self._values))
        return self._mask

    def also(self, values: Iterable[str]) -> KnownSecrets:
        """These secrets and others, which are masked only by what this returns: it learns nothing for all."""
        more = Mask(frozenset(values), forms=False)
        return _MoreSecrets(self, more)

    def __repr__(self) -> str:
        return f"<{len(self._values)} secrets>"


class _MoreSecrets(KnownSecrets):
    """Known secrets, with those of one call."""

    def __init__(self, known: KnownSecrets, more: Mask) -> None:
        super().__init__()
        self._known = known
        self._more = more

    def add(self, values: Iterable[str]) -> None:
        self._known.add(values)

    def masked(self, value: Any, schema: Mapping[str, Any] | bool = True) -> Any:
        return self._more.data(self._known.masked(value, schema))

    @property
    def mask(self) -> Mask:
        return self._known.mask
