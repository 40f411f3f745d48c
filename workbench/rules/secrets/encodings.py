"""What becomes of a secret when other programs write it: escaped, in base64 or hexadecimal digits, cut into lines.

Escapes are undone before a secret is looked for, so that any mixture of them is found. Long forms are found by their
parts, by a look-up that takes as long for a thousand secrets as for one.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from workbench.rules.secrets.forms import MASK, is_opaque

DEPTH = 3
"""How often a text may be escaped: JSON in JSON in a URL."""
PIECE = 16
"""Characters of a part of a secret that is secret, too."""
SHORTEST_ENCODED = 8
"""Characters of a value whose encoded forms are searched for."""
_GRAM = 5
_OF_FORMS, _OF_TEXTS = 4, 3
"""The `_GRAM` characters at each fourth place of forms are known, and looked up at each third of texts. A part of
`PIECE` characters has 12 such places, of which one is both, as four and three have no divisor in common."""
_SAME = 4
"""Places of the same characters that are remembered."""
_ESCAPE = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)|(?P<units>(?:\\u[0-9A-Fa-f]{4})+)|(?P<octets>(?:\\x[0-9A-Fa-f]{2})+)"
    r"|\\(?P<control>[bfnrt])|\\(?P<sign>[^A-Za-z0-9\s])"
    r"|(?P<entity>&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);)"
)
"""Of URLs, of JSON and programs, of HTML."""
_CONTROLS = dict(zip("bfnrt", "\b\f\n\r\t", strict=True))
_URL_SAFE = str.maketrans("-_", "+/")
_TO_URL_SAFE = str.maketrans("+/", "-_")
_RUN = re.compile(rf"[A-Za-z0-9+/=_.~-]{{{PIECE},}}")
"""What keys, base64 and digits consist of."""
_WORD = re.compile(r"(?!.*://)[^\s\"'{}<>]+")
"""What is nothing but a secret: no address, sentence or data, of which parts are none."""


@dataclass(slots=True)
class Unescaped:
    """A text whose escapes are undone, and where its characters were."""

    text: str = ""
    _at: list[int] = field(default_factory=list)
    _was: list[int] = field(default_factory=list)

    def place(self, position: int) -> int:
        """Where a character was."""
        index = bisect_right(self._at, position) - 1
        return self._was[index] + position - self._at[index]


def unescaped(text: str) -> Unescaped | None:
    """A text without one level of escapes; None if it has none."""
    if "\\" not in text and "%" not in text and "&" not in text:
        return None
    found, parts, length, done = Unescaped(), list[str](), 0, 0
    for escape in _ESCAPE.finditer(text):
        verbatim = text[done : escape.start()]
        found._at.append(length)
        found._was.append(done)
        length, done = length + len(verbatim), escape.start()
        parts.append(verbatim)
        for character, width in _meant(escape):
            found._at.append(length)
            found._was.append(done)
            parts.append(character)
            length, done = length + len(character), done + width
    if not parts:
        return None
    found._at.append(length)
    found._was.append(done)
    found.text = "".join((*parts, text[done:]))
    return found


def _meant(escape: re.Match[str]) -> Iterator[tuple[str, int]]:
    """The characters that an escape stands for, and how many it takes for each."""
    written = escape[0]
    match escape.lastgroup:
        case "percent":
            text = bytes.fromhex(written.replace("%", "")).decode("utf-8", "surrogateescape")
            yield from ((one, 3 * len(one.encode("utf-8", "surrogateescape"))) for one in text)
        case "units":
            units = bytes.fromhex(written.replace("\\u", ""))
            yield from ((one, 12 if ord(one) > 0xFFFF else 6) for one in units.decode("utf-16-be", "surrogatepass"))
        case "octets":
            octets = bytes.fromhex(written.replace("\\x", ""))
            try:
                yield from ((one, 4 * len(one.encode())) for one in octets.decode())
            except UnicodeDecodeError:  # the characters of a text, not the bytes of one
                yield from ((one, 4) for one in octets.decode("latin-1"))
        case "control":
            yield _CONTROLS[escape["control"]], len(written)
        case "sign":
            yield escape["sign"], len(written)
        case _:
            yield html.unescape(written), len(written)


def plain(value: str) -> set[str]:
    """A value, and as forms of web pages write it, whose other escapes are undone."""
    return {value, value.replace(" ", "+")}


def encoded(value: str) -> Iterator[str]:
    """A value in base64, alone or within more, and in hexadecimal digits; see `Pieces` for its URL-safe form."""
    if len(value) < SHORTEST_ENCODED:
        return
    raw = value.encode("utf-8", "surrogatepass")
    for before in range(3):  # the bytes before it decide how it is aligned
        start, rest = -(-before * 4 // 3), (before + len(raw)) % 3
        whole = b64encode(bytes(before) + raw).decode().rstrip("=")
        yield whole[start : len(whole) - bool(rest)]
    yield raw.hex()
    yield raw.hex().upper()


def short_forms(forms: Iterable[str]) -> set[str]:
    """The forms of which no part is searched for, also as base64 is written in URLs."""
    short = {form for form in forms if len(form) < PIECE}
    return short | {form.translate(_TO_URL_SAFE) for form in short}


class Pieces:
    """Finds parts of long opaque words, and of what is encoded: programs break those into lines, and cut them.

    Args:
        values: secrets; of their readable parts, such as the host of an address, none is found.
        forms: of secrets, encoded; each part of them is found.
    """

    def __init__(self, values: Iterable[str], forms: Iterable[str]) -> None:
        self._places: dict[str, list[tuple[str, int, bool]]] = {}
        for value in filter(_WORD.fullmatch, values):
            for run in _RUN.findall(value):
                self._add(run, is_encoded=False)
        for form in forms:
            self._add(form, is_encoded=True)

    def _add(self, word: str, *, is_encoded: bool) -> None:
        word = word.translate(_URL_SAFE)
        for start in range(0, len(word) - _GRAM + 1, _OF_FORMS):
            places = self._places.setdefault(word[start : start + _GRAM], [])
            if len(places) < _SAME:
                places.append((word, start, is_encoded))

    def without(self, text: str) -> str:
        """A text in which such parts are replaced by `MASK`."""
        if not (spans := self.spans(text)):
            return text
        parts, done = list[str](), 0
        for start, end in spans:
            parts += (text[done:start], MASK)
            done = end
        return "".join((*parts, text[done:]))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where such parts are in a text, from left to right."""
        spans, places = list[tuple[int, int]](), self._places
        for run in _RUN.finditer(text) if places else ():
            word = run[0].translate(_URL_SAFE)
            grams = [word[start : start + _GRAM] for start in range(0, len(word) - _GRAM + 1, _OF_TEXTS)]
            if not places.keys().isdisjoint(grams):  # they are in few words
                spans += ((run.start() + begin, run.start() + end) for begin, end in self._in(word, grams))
        return spans

    def _in(self, word: str, grams: list[str]) -> Iterator[tuple[int, int]]:
        """Where parts are in a word, given its `_GRAM` characters at each third place, from left to right."""
        done = 0
        for start, gram in zip(range(0, len(word), _OF_TEXTS), grams, strict=False):
            if start >= done and gram in self._places:
                begin, end = max((self._grown(word, start, done, place) for place in self._places[gram]), key=_length)
                if end > begin:
                    yield begin, end
                    done = end

    @staticmethod
    def _grown(word: str, start: int, done: int, place: tuple[str, int, bool]) -> tuple[int, int]:
        """As much around some characters as a word and a form have in common; nothing if it is too short."""
        form, at, is_encoded = place
        begin, first = start, at
        while begin > done and first > 0 and word[begin - 1] == form[first - 1]:
            begin, first = begin - 1, first - 1
        end, last = start + _GRAM, at + _GRAM
        while end < len(word) and last < len(form) and word[end] == form[last]:
            end, last = end + 1, last + 1
        is_part = end - begin >= PIECE and (is_encoded or is_opaque(word[begin:end]))
        return (begin, end) if is_part else (start, start)


def _length(span: tuple[int, int]) -> int:
    return span[1] - span[0]
