"""Masks in texts and data what is secret: values that are known, also encoded, and what is secret by its form."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from workbench.rules.secrets.forms import (
    KEY_BEGINS,
    KEY_BODY,
    KEY_ENDS,
    KEY_LINE,
    KEY_LINES,
    MASK,
    OPAQUE,
    after_flags,
    is_secret_under,
    masked_by_form,
    masked_uncoloured,
    says_secret,
)
from workbench.rules.secrets.marks import Marks, whole_in_base64

_KEY_BEGINS = re.compile(KEY_BEGINS)
_OPEN_KEY = re.compile(rf"{KEY_BEGINS}(?:{KEY_BODY})?[\r\n]*\Z")
_OF_KEY = re.compile(KEY_LINE)
_LAST_WORD = re.compile(r"(?<![!-~])[!-~]*\Z")
SHORTEST = 4
"""Characters of a value that is searched for in texts; shorter ones occur by chance."""
SHORTEST_NUMBER = 6
"""The same in numbers."""
SHORTEST_ENCODED = 8
"""Characters of a value whose encoded forms are searched for."""


class Mask:
    """What to mask. It has no representation that shows it.

    Args:
        values: what is secret wherever it occurs, also within longer texts, encoded, and in keys.
        forms: whether what is secret by its form is masked, too.
        marks: of values that are secret where they stand alone, also encoded, but are not known.
    """

    def __init__(self, values: Collection[str] = (), *, forms: bool = True, marks: Marks | None = None) -> None:
        self._forms = forms
        self._marks = marks or None
        parts = _parts(values)
        found = parts.union(*map(_encoded, parts)) if parts else parts
        self._known = sorted(found, key=len, reverse=True)  # those that contain others first
        shortest = min((max(map(len, value.split()), default=0) for value in found), default=0)
        self._long_word = re.compile(rf"\S{{{shortest}}}").search
        """Finds a word as long as those of what is known are: most lines have none, and need no search for each."""

    def text(self, text: str) -> str:
        """A text without secrets. If it has some, the colours of a terminal are left out."""
        return masked_uncoloured(text, self._masked)

    def _masked(self, text: str) -> str:
        known = [value for value in self._known if value in text] if self._known and self._long_word(text) else []
        if self._forms:
            # a short one within a longer key would hide its form
            text = masked_by_form(self._without(text, [value for value in known if len(value) >= OPAQUE], OPAQUE))
        return self._without(text, known)

    def _without(self, text: str, values: Iterable[str], shortest: int = 0) -> str:
        for value in values:
            text = text.replace(value, MASK)
        return self._marks.without(text, shortest) if self._marks else text

    def data(self, value: Any) -> Any:
        """A JSON value without secrets, also in keys and numbers, and under keys such as `password`."""
        if not self._known and not self._forms and not self._marks:
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.data(key): self._under(key, one) for key, one in value.items()}
            case list() | tuple():
                return [self._after(flag, one) for flag, one in after_flags(value)]
            case int() | float() if not isinstance(value, bool):
                return MASK if self._has(repr(value)) else value
        return value

    def _has(self, digits: str) -> bool:
        known = (known for known in self._known if len(known) >= SHORTEST_NUMBER)
        return any(known in digits for known in known) or bool(
            self._marks and len(digits) >= SHORTEST_NUMBER and self._marks.knows(digits)
        )

    def _after(self, flag: str, value: Any) -> Any:
        """A value in a list without secrets; after a flag, it may be one because of that: `["--password", "x"]`."""
        if self._forms and flag and isinstance(value, str) and is_secret_under(flag, value):
            return MASK
        return self.data(value)

    def _under(self, key: Any, value: Any) -> Any:
        """A value in a dictionary without secrets; it, and those in a list, may be secret because of the key."""
        if self._forms and isinstance(key, str) and says_secret(key):
            if isinstance(value, str):
                return MASK if is_secret_under(key, value) else self.data(value)
            if isinstance(value, list | tuple):
                return [self._under(key, one) for one in value]
            if isinstance(value, int) and len(str(value)) >= SHORTEST_NUMBER and is_secret_under(key, "0"):
                return value if isinstance(value, bool) else MASK
        return self.data(value)

    def __repr__(self) -> str:
        return f"<{len(self._known)} secrets>"


class LineMask:
    """Masks an output that comes line by line, with private keys, which have several.

    A private key ends with its last line, or with what is no part of one.

    Args:
        mask: masks a whole text.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._of_key = 0
        """How many lines of a private key may follow."""

    def __call__(self, line: str) -> str:
        """The line without secrets."""
        if self._of_key and KEY_ENDS not in line and _OF_KEY.fullmatch(line.rstrip("\r\n")):
            self._of_key -= 1
            return MASK
        begins = _KEY_BEGINS.search(line) is not None and KEY_ENDS not in line
        self._of_key = KEY_LINES if begins else 0
        return self._mask(line)


class StreamMask:
    """Masks a text that comes in pieces, which may cut through secrets: the last word waits for its end.

    Args:
        mask: masks a whole text.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._open = ""
        """What has come of a line, or private key, that has not ended: it tells what follows it."""
        self._shown = 0
        """How many characters of its masked form were shown."""

    def __call__(self, piece: str) -> str:
        """What can be shown by now, and was not yet."""
        shown, self._open = "", self._open + piece
        lines = self._open.rfind("\n") + 1
        if lines and not _OPEN_KEY.search(self._open):
            rest = self._open[lines:]
            self._open = self._open[:lines]
            shown, self._open = self.rest(), rest
        masked = self._mask(self._open)
        until = max(self._shown, len(masked) - len(_LAST_WORD.findall(masked)[0]))
        shown, self._shown = shown + masked[self._shown : until], until
        return shown

    def rest(self) -> str:
        """What was not shown yet; the text has ended."""
        rest, self._open, self._shown = self._mask(self._open)[self._shown :], "", 0
        return rest


def standing_alone(values: Iterable[str]) -> set[str]:
    """Secrets, and what they are when other programs write them by themselves: what marks are made of."""
    parts = _parts(values)
    long = (part for part in parts if len(part) >= SHORTEST_ENCODED)
    return parts.union(*map(_escaped, parts), *map(whole_in_base64, long)) if parts else parts


def _parts(values: Iterable[str]) -> set[str]:
    """Values that are searched for, and their lines."""
    return {part for value in values for part in (value, *value.splitlines()) if len(part) >= SHORTEST}


def _escaped(value: str) -> Iterator[str]:
    """A value in JSON, and in a URL."""
    yield from (json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))
    yield from (quote(value, safe=""), quote(value), quote_plus(value))


def _encoded(value: str) -> Iterator[str]:
    """A value as other programs write it: in JSON, in a URL, and in base64, alone or within more."""
    yield from _escaped(value)
    if len(value) < SHORTEST_ENCODED:
        return
    raw = value.encode("utf-8", "surrogatepass")
    for before in range(3):  # the bytes before it decide how it is aligned
        start, rest = -(-before * 4 // 3), (before + len(raw)) % 3
        for encode in (b64encode, urlsafe_b64encode):
            whole = encode(bytes(before) + raw).decode().rstrip("=")
            yield whole[start : len(whole) - bool(rest)]
