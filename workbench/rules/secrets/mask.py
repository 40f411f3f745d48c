"""Masks in texts and data what is secret: values that are known, also encoded, and what is secret by its form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from workbench.rules.secrets.encodings import (
    DEPTH,
    PIECE,
    SHORTEST_ENCODED,
    Pieces,
    Unescaped,
    encoded,
    plain,
    short_forms,
    unescaped,
)
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
_LAST_WORD = re.compile(r"(?<![!-~])[!-~]*[\r\n]*\Z")
"""With the end of its line, which is shown only when it is known that no part of a private key follows."""
SHORTEST = 4
"""Characters of a value that is searched for in texts; shorter ones occur by chance."""
SHORTEST_NUMBER = 6
"""The same in numbers."""


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
        forms_of = set[str]().union(*map(encoded, parts)) if parts else set[str]()
        self._pieces = Pieces(parts, (form for form in forms_of if len(form) >= PIECE))
        found = parts.union(*map(plain, parts), short_forms(forms_of))
        self._known = sorted(found, key=len, reverse=True)  # those that contain others first
        self._undone = {*found, *(form for value in found for form in _undone(value) if len(form) >= SHORTEST)}
        shortest = min((max(map(len, value.split()), default=0) for value in found), default=0)
        self._long_word = re.compile(rf"\S{{{shortest}}}").search
        """Finds a word as long as those of what is known are: most lines have none, and need no search for each."""

    def text(self, text: str) -> str:
        """A text without secrets. If it has some, the colours of a terminal are left out."""
        return masked_uncoloured(text, self._masked)

    def _masked(self, text: str) -> str:
        if self._known or self._marks:
            text = self._without_escaped(text)
        known = [value for value in self._known if value in text] if self._known and self._long_word(text) else []
        # what is short could hide a part or a form of what is longer
        text = self._pieces.without(self._without(text, [value for value in known if len(value) >= OPAQUE], OPAQUE))
        return self._without(masked_by_form(text) if self._forms else text, known)

    def _without(self, text: str, values: Iterable[str], shortest: int = 0) -> str:
        for value in values:
            text = text.replace(value, MASK)
        return self._marks.without(text, shortest) if self._marks else text

    def _without_escaped(self, text: str) -> str:
        """A text without what is known where that is written with escapes."""
        levels = list[Unescaped]()
        while len(levels) < DEPTH and (level := unescaped(levels[-1].text if levels else text)):
            levels.append(level)
        if not levels:
            return text
        spans = sorted({span for depth in range(1, len(levels) + 1) for span in self._escaped(levels[:depth])})
        parts, done = list[str](), 0
        for start, end in spans:
            if start >= done:
                parts += (text[done:start], MASK)
            done = max(done, end)
        return "".join((*parts, text[done:])) if parts else text

    def _escaped(self, levels: Sequence[Unescaped]) -> Iterator[tuple[int, int]]:
        """Where in a text is what is known, when some levels of escapes are undone."""
        text = levels[-1].text
        spans = [span for value in self._undone if value in text for span in _all(value, text)]
        for start, end in (*spans, *self._pieces.spans(text), *(self._marks.spans(text) if self._marks else ())):
            first, last = start, end
            for level in reversed(levels):
                first, last = level.place(first), level.place(last)
            if last - first > end - start:
                yield first, last

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
    return parts.union(*map(plain, parts), *map(whole_in_base64, long)) if parts else parts


def _parts(values: Iterable[str]) -> set[str]:
    """Values that are searched for, and their lines."""
    return {part for value in values for part in (value, *value.splitlines()) if len(part) >= SHORTEST}


def _undone(value: str) -> Iterator[str]:
    """What becomes of a value that looks escaped itself, such as `50%25`, when escapes are undone."""
    for _ in range(DEPTH):
        if (level := unescaped(value)) is None:
            return
        value = level.text
        yield value


def _all(value: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a value is in a text."""
    start = -1
    while (start := text.find(value, start + 1)) >= 0:
        yield start, start + len(value)
