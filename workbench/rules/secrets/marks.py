"""Recognises secrets by keyed hashes (marks) of them, where the values themselves are not known.

A mark shows nothing of its value to those who lack the key. Beside it are the length of the value and two bytes of a
keyed hash of its beginning: they tell which pieces of a text are worth a hash.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from workbench.rules.secrets.forms import MASK, masked_by_form

KEY_BYTES = 32
DIGEST_BYTES = 16
BEGINNING = 4
"""Characters of the beginning of a value; no value is shorter."""
BEGINNINGS = 10_000
"""How many beginnings of words are remembered: most words of a text occur again."""
_WORD = re.compile(r"[A-Za-z0-9+/_-]+")
_EDGE = re.compile(r"(?<![A-Za-z0-9])|(?![A-Za-z0-9])")
"""Not within a word or number."""


class Mark(NamedTuple):
    """A keyed hash of a value (keyed BLAKE2b, which is a MAC), that of its beginning, and its length."""

    mark: str
    beginning: str
    characters: int


def marks(key: bytes, values: Iterable[str]) -> list[Mark]:
    """The marks of values. What is known by its form needs none."""
    found = sorted({value for value in values if not _is_known_by_form(value)})
    return [Mark(_hash(key, value), _hash(key, value[:BEGINNING], 2), len(value)) for value in found]


def _is_known_by_form(value: str) -> bool:
    """Whether a value has a form; a word such as base64, of which only a part has one by chance, is not known by it."""
    shown = masked_by_form(value)
    return shown == MASK or (shown != value and _WORD.fullmatch(value) is None)


def whole_in_base64(value: str) -> Iterator[str]:
    """A value in base64, alone; its padding is no part of it."""
    raw = value.encode("utf-8", "surrogatepass")
    yield from (encode(raw).decode().rstrip("=") for encode in (b64encode, urlsafe_b64encode))


class Marks:
    """Values of which only the marks are known.

    Args:
        key: of the marks.
    """

    def __init__(self, key: bytes, known: Iterable[Mark]) -> None:
        self._key = key
        self._known = frozenset(known)
        self._marks = {one.mark for one in self._known}
        self._lengths: dict[str, list[int]] = {}
        for beginning, length in sorted({one[1:] for one in self._known}, reverse=True):  # the longest first
            self._lengths.setdefault(beginning, []).append(length)
        self._worth = lru_cache(BEGINNINGS)(self._lengths_of)

    def __len__(self) -> int:
        return len(self._marks)

    def knows(self, value: str) -> bool:
        """Whether a value is one of these."""
        return _hash(self._key, value) in self._marks

    def without(self, text: str, shortest: int = 0) -> str:
        """A text in which these are replaced by `MASK`, where they are no part of a longer word.

        Args:
            shortest: characters of the shortest that are replaced.
        """
        parts, done = list[str](), 0
        for start, end in self.spans(text, shortest):
            parts += (text[done:start], MASK)
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def spans(self, text: str, shortest: int = 0) -> Iterator[tuple[int, int]]:
        """Where these are in a text; see `without`."""
        done = 0
        for edge in _EDGE.finditer(text):
            start = edge.start()
            for length in self._worth(text[start : start + BEGINNING]) if start >= done else ():
                end = start + length
                if shortest <= length <= len(text) - start and _EDGE.match(text, end) and self.knows(text[start:end]):
                    yield start, end
                    done = end
                    break

    def _lengths_of(self, beginning: str) -> Sequence[int]:
        """The lengths of values that may begin so."""
        return self._lengths.get(_hash(self._key, beginning, 2), ())


def _hash(key: bytes, value: str, size: int = DIGEST_BYTES) -> str:
    """Hexadecimal digits, two for each byte."""
    return hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=key, digest_size=size).hexdigest()
