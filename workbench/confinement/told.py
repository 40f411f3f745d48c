"""Paths as a person reads them: what a command in a box writes has the paths inside, which lead elsewhere outside.

Where the worktree stands at the project's path, an error in it would send her to a file of her own checkout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_BEFORE = r"(?:(?<![\w.~/-])|(?<=://)|(?<=\s-[IL]))"
"""What may stand before a path: nothing that makes it a part of another one."""
_CONTEXT = 3
"""How many characters before a path are looked at."""
_AFTER = r"(?![\w~+-]|\.\w)"
"""What may follow a name: nothing that makes it another one."""


class Translation:
    """Translates paths in texts; other text, and paths to which no pair applies, stay as they are.

    Args:
        pairs: paths inside, and the same outside. Of several around a path, the nearest counts.
    """

    def __init__(self, pairs: Iterable[tuple[Path, Path]] = ()) -> None:
        self._outside = {str(inside): str(outside) for inside, outside in pairs}
        nearest_first = sorted(self._outside, key=len, reverse=True)
        names = "|".join(map(re.escape, nearest_first))
        self.is_idle = all(inside == outside for inside, outside in self._outside.items())
        """Whether it changes nothing."""
        self._pattern = re.compile(f"{_BEFORE}(?:{names}){_AFTER}")
        self._longest = max(map(len, self._outside), default=0)

    @property
    def changes(self) -> dict[str, str]:
        """Its pairs; none if it changes nothing."""
        return {} if self.is_idle else dict(self._outside)

    def text(self, text: str, start: int = 0) -> str:
        """A text with the paths outside, from `start` on: what stands before is only looked at."""
        if self.is_idle:
            return text[start:]
        parts = []
        for match in self._pattern.finditer(text, start):
            parts += [text[start : match.start()], self._outside[match[0]]]
            start = match.end()
        return "".join((*parts, text[start:]))

    def data(self, value: Any) -> Any:
        """A JSON value with the paths outside, in keys, too."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.data(key): self.data(one) for key, one in value.items()}
            case list() | tuple():
                return [self.data(one) for one in value]
        return value

    def split(self, text: str) -> int:
        """How much of an output that goes on can be translated: the rest may be the beginning of a path."""
        if self.is_idle:
            return len(text)
        for start in range(max(len(text) - self._longest - 1, 0), len(text)):
            rest = text[start:]
            if any(inside.startswith(rest) or rest == f"{inside}." for inside in self._outside):
                return start
        return len(text)


class Stream:
    """Translates an output that comes in pieces."""

    def __init__(self, translation: Translation) -> None:
        self._translation = translation
        self._before = self._waiting = ""

    @property
    def is_waiting(self) -> bool:
        """Whether text is held back that may be the beginning of a path."""
        return bool(self._waiting)

    def add(self, piece: str) -> str:
        """What can be shown after one more piece of the output."""
        self._waiting += piece
        return self._take(self._translation.split(self._waiting))

    def flush(self) -> str:
        """What has been held back: nothing more comes, or not soon."""
        return self._take(len(self._waiting))

    def _take(self, length: int) -> str:
        """The next part; it is a path only if what was taken before it says so."""
        text, start = self._before + self._waiting[:length], len(self._before)
        self._before, self._waiting = text[-_CONTEXT:], self._waiting[length:]
        return self._translation.text(text, start)
