"""Makes text that workers wrote harmless to show: what controls a terminal or reorders text is shown as an escape.

`inert` is for terminals, `as_html` and `prose_as_html` for pages, `inert_line` for what a person is asked to
trust. The panel does the same as `inert` in `panels/src/lib/inert.js`.
"""

from __future__ import annotations

import html
import json
import re

_QUOTED = re.compile(r"`([^`\n]+)`")
_ACTIVE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, such as those of escape sequences, but for tab and newline
    "\xad\u061c\u180e\u200b\u200e\u200f"  # invisible, or marks of direction
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # line separators; embeddings, overrides and isolates of direction
    "\ud800-\udfff"  # no characters
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # invisible: controls of musical notation, tags
    "]"
)


def inert(text: str) -> str:
    r"""Text that a terminal only prints: everything else is escaped as in JSON, such as ``\u001b``; lines stay."""
    return _ACTIVE.sub(_escape, text)


def inert_line(text: str) -> str:
    """Text on one line, of which a person must see every character: all that is not printable is escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def as_html(text: str) -> str:
    """The same as HTML."""
    return html.escape(inert(text))


def prose_as_html(text: str) -> str:
    """The same of sentences, in which commands are between backticks."""
    return _QUOTED.sub(r"<code>\1</code>", as_html(text))


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def fenced(text: str, language: str = "") -> str:
    """A code block of Markdown; its fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
