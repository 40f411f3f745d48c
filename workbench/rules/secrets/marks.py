"""Recognises secrets by keyed hashes (marks) of them, where the values themselves are not known.

A mark shows nothing of its value to those who lack the key; the length that is kept beside it tells which pieces of a
text are worth a hash.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator

from workbench.rules.secrets.forms import MASK, has_form

KEY_BYTES = 32
DIGEST_BYTES = 16
_EDGE = r"(?:(?<![A-Za-z0-9])|(?![A-Za-z0-9]))"
"""Not within a word or number."""


def mark(key: bytes, value: str) -> str:
    """The keyed hash of a value (keyed BLAKE2b, which is a MAC), as hexadecimal digits."""
    return hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=key, digest_size=DIGEST_BYTES).hexdigest()


def marks(key: bytes, parts: Iterable[str]) -> dict[str, int]:
    """The marks of values, each with the length of its value, negative if that contains white space.

    What is known by its form needs none.
    """
    found = {part for part in parts if not has_form(part)}
    return {mark(key, part): -len(part) if any(map(str.isspace, part)) else len(part) for part in found}


def whole_in_base64(value: str) -> Iterator[str]:
    """A value in base64, alone; its padding is no part of it."""
    raw = value.encode("utf-8", "surrogatepass")
    yield from (encode(raw).decode().rstrip("=") for encode in (b64encode, urlsafe_b64encode))


class Marks:
    """Values of which only the marks are known.

    Args:
        key: of the marks.
        known: see `marks`.
    """

    def __init__(self, key: bytes, known: dict[str, int]) -> None:
        self._key = key
        self._known = known
        self._pieces = [(abs(length), _pieces(length)) for length in sorted(set(known.values()), key=abs, reverse=True)]

    def __len__(self) -> int:
        return len(self._known)

    def knows(self, value: str) -> bool:
        """Whether a value is one of these."""
        return bool(self._known) and mark(self._key, value) in self._known

    def without(self, text: str, shortest: int = 0) -> str:
        """A text in which these are replaced by `MASK`, where they are no part of a longer word.

        Args:
            shortest: characters of the shortest that are replaced.
        """
        for length, pieces in self._pieces:
            if length < shortest:
                break
            text = self._without(text, length, pieces)
        return text

    def _without(self, text: str, length: int, pieces: re.Pattern[str]) -> str:
        parts, done, seen = list[str](), 0, dict[str, bool]()
        for found in pieces.finditer(text):
            piece, start = found[1], found.start()
            if start < done:
                continue
            if piece not in seen:
                seen[piece] = self.knows(piece)
            if seen[piece]:
                parts += (text[done:start], MASK)
                done = start + length
        return "".join((*parts, text[done:])) if parts else text


def _pieces(length: int) -> re.Pattern[str]:
    """Every piece of a text with a length that is no part of a longer word; with white space if that is negative."""
    piece = rf"\S{{{length}}}" if length > 0 else rf"[\s\S]{{{-length}}}"
    return re.compile(rf"(?={_EDGE}({piece}){_EDGE})")
