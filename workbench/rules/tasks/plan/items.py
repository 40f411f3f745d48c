"""The lines of a Markdown checklist as a tree of items.

No Markdown library that comes with Workbench tells lines; so this reads lines, and refuses what Markdown would only
take for something else: a box that is none, an item without one, text that might belong to an item or not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from workbench.rules.tasks.lifecycle import TREE_DEPTH
from workbench.rules.tasks.plan import attributes
from workbench.rules.tasks.plan.draft import Problems

_MARKER = r"[ \t]*([-*+]|\d{1,9}[.)])"
_ITEM = re.compile(rf"{_MARKER}[ \t]+\[([ xX])\](?:[ \t]+(.*))?", re.DOTALL)
_BOX = rf"{_MARKER}[ \t]*\[(?:[^\]\n]?|[ \t]*+(?:[xX][ \t]*+)?)\](?!\()"
_NEARLY = re.compile(_BOX)
_ANY = re.compile(rf"^{_BOX}", re.MULTILINE)
_BULLET = re.compile(rf"{_MARKER}[ \t]")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)", re.DOTALL)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")


def slug(title: str) -> str:
    """A title's words in lower case with dashes between them; empty if it has no letters or digits of ASCII."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:100].strip("-")


def has_items(text: str) -> bool:
    """Whether there is anything like an item with a box in a text."""
    return _ANY.search(text) is not None


def is_text(line: str) -> bool:
    """Whether an indented line is nothing but text."""
    return not (_NEARLY.match(line) or _FENCE.match(line) or _begins_comment(line))


def _begins_comment(line: str) -> bool:
    return line.lstrip(" \t").startswith("<!--")


@dataclass
class Item:
    """An item while it is being read."""

    line: int
    indent: int
    numbered: bool
    stretch: int
    """Which stretch of items it is in: a heading or other text begins another one."""
    ticked: bool
    title: str
    said: dict[str, Any]
    """Its attributes."""
    text: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    said_all: bool = False
    """Its lines of attributes have ended."""

    @property
    def name(self) -> str:
        """As it is said, or made from the title."""
        return str(self.said.get("name", slug(self.title)))

    def names(self) -> Iterator[str]:
        """Of all tasks in it that are not ticked."""
        if not self.ticked:
            yield self.name
        for item in self.items:
            yield from item.names()


class Reader:
    """Takes lines, and has the items of the top level in the end."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.title: tuple[int, str] | None = None
        self.top: list[Item] = []
        self._path: list[Item] = []
        self._stretch = 0
        self._after_text = False
        self._open: tuple[int, str] | None = None
        """Where a fence or comment began, and how the line that closes it does."""

    def line(self, number: int, line: str) -> None:
        """Take the next line."""
        column = len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))
        if self._open:
            self._within(line, self._open[1])
        elif not line.strip():
            self._blank()
        elif found := _ITEM.fullmatch(line):
            self._item(number, column, found)
        elif _NEARLY.match(line):
            self.problems.add(number, "a task begins `- [ ] ` or `1. [ ] `, one that is done `- [x] `")
        elif begun := _FENCE.match(line):
            self._open = (number, begun[1])
            self._text(number, line, column, is_fence=True)
        elif _begins_comment(line):
            self._open = None if "-->" in line else (number, "-->")
        elif column:
            self._text(number, line, column)
        else:
            self._prose(number, line)

    def end(self) -> None:
        """There are no more lines."""
        if self._open:
            self.problems.add(self._open[0], f"what begins here is not closed by {self._open[1]!r}")

    def _within(self, line: str, closing: str) -> None:
        """A line of a comment, or of a fence, which may be longer at its end."""
        is_comment, word = closing == "-->", line.strip()
        if closing in word if is_comment else word.startswith(closing) and not word.strip(closing[0]):
            self._open = None
        if not is_comment and self._path:
            self._path[-1].text.append(line)

    def _blank(self) -> None:
        self._after_text = False
        if self._path:
            self._path[-1].said_all = True
            self._path[-1].text.append("")

    def _item(self, number: int, column: int, found: re.Match[str]) -> None:
        while self._path and column < self._path[-1].indent + 2:
            self._path.pop()
        if len(self._path) == TREE_DEPTH:
            self.problems.add(number, f"it has more than {TREE_DEPTH - 1} tasks above it")
            return
        title, said, wrong = attributes.behind(found[3] or "")
        made = Item(number, column, found[1][0].isdigit(), self._stretch, found[2] != " ", title, said)
        (self._path[-1].items if self._path else self.top).append(made)
        self._path.append(made)
        self._after_text = True
        for reason in wrong:
            self.problems.add(number, reason)

    def _text(self, number: int, line: str, column: int, is_fence: bool = False) -> None:
        """An indented line: of the innermost item that it is indented more than."""
        while self._path and column <= self._path[-1].indent:
            self._path.pop()
        if not self._path:
            return
        item = self._path[-1]
        said = None if item.said_all or item.items or is_fence else attributes.line(line.strip())
        if said is None:
            item.said_all = True
            item.text.append(line)
        else:
            for reason in attributes.put(item.said, *said):
                self.problems.add(number, reason)
        self._after_text = True

    def _prose(self, number: int, line: str) -> None:
        """A line that is not indented and no item: it ends the list."""
        heading = _HEADING.fullmatch(line)
        if heading is None and _BULLET.match(line):
            self.problems.add(number, "an item without a box; write `- [ ] ` for a task, or indent it below one")
        elif heading is None and self._after_text and self._path:
            self.problems.add(number, "indent it if it belongs to the item above, else leave a line empty before it")
        if heading and len(heading[1]) == 1 and self.title is None:
            self.title = (number, heading[2].rstrip(" \t").rstrip("#").rstrip(" \t"))
        self._path.clear()
        self._stretch += 1
